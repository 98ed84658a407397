/** Annotations that lowering accepts, but which do not do what they seem to say. */
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import { streamAxis } from "../ir/stream.ts";
import { annotationConflicts, bytesOfAll, type Judge, judgeOfBytes } from "../passes/moves/annotation-conflicts.ts";
import { gatheredIndices } from "../passes/moves/gathered-indices.ts";
import { gatheredStreams } from "../passes/moves/gathered-streams.ts";
import { movedTensors } from "../passes/moves/list-reshardings.ts";
import { unfollowedInputs } from "../passes/propagate/unfollowed-inputs.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { Decomposed } from "../passes/pipeline.ts";
import { decomposedData, type HasFusionData, placedData } from "./lower.ts";
import { type NamedNumbers, numbersByName } from "./record.ts";
import type { ReshardingsOptions } from "./reshardings.ts";

/**
 * Warnings about annotations: `annotations-conflict` where those of two tensors contradict each other, so that one is
 * moved, `indexed-axis-gathered` where the shares of an indexed axis are unequal, `stream-on-input` where no op follows
 * the chunks of an input, and `stream-keeps-whole` where chunks of an axis keep devices from sharing it. `judge` decides
 * between other annotations, by bytes if omitted. Empty for a Fusion that lowering refuses.
 */
export function annotationWarnings(
  fusion: HasFusionData,
  { sizes = {}, ...lowering }: ReshardingsOptions = {},
  judge: Judge | null = null,
): readonly Diagnostic[] {
  const found = decomposedOrNull(fusion, lowering);
  return found === null ? [] : warningsOf(found, fusion, sizes, lowering, judge);
}

/** `placedData` and `annotationWarnings` by one run of the passes. Throws what `placedData` throws. */
export function placedWithWarnings(
  fusion: HasFusionData,
  { sizes = {}, ...lowering }: ReshardingsOptions,
): { readonly placed: FusionData; readonly warnings: readonly Diagnostic[] } {
  const found = decomposedOrNull(fusion, lowering);
  if (found === null) return { placed: placedData(fusion, lowering), warnings: [] };
  return { placed: found.placed, warnings: warningsOf(found, fusion, sizes, lowering, null) };
}

/** A warning where several devices are asked for and no tensor is on more than the first. */
export function unplacedWarnings({ tensors }: Pick<FusionData, "tensors">, devices: number): readonly Diagnostic[] {
  if (devices < 2 || tensors.some(({ mesh }) => mesh !== null)) return [];
  return [
    {
      code: "mesh-missing",
      severity: "warning",
      message: "no tensor has a DeviceMesh, so device 0 computes alone",
      found: `${devices} devices, of which ${devices - 1} ${devices === 2 ? "has" : "have"} nothing to do`,
      expected: "a mesh on the inputs",
      help:
        `call setDeviceMesh(DeviceMesh.range(${devices})) on the inputs, and on those that devices share ` +
        `outerSplit(axis, ${devices}).parallelize("DIDx")`,
    },
  ];
}

type Lowering = Omit<ReshardingsOptions, "sizes">;

/** Null for a Fusion that lowering refuses. */
function decomposedOrNull(fusion: HasFusionData, lowering: Lowering): Decomposed | null {
  try {
    return decomposedData(fusion, lowering);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function warningsOf(
  { placed, decomposed }: Decomposed,
  fusion: HasFusionData,
  sizes: NamedNumbers,
  lowering: Lowering,
  given: Judge | null,
): readonly Diagnostic[] {
  const before = fusion.data();
  const { overlap, nvfuserLimits = false } = lowering;
  const lowered = (changed: FusionData): FusionData | null =>
    decomposedOrNull({ data: () => changed }, lowering)?.decomposed ?? null;
  const known = sizeOf(before, sizes);
  const bytesOf = (made: FusionData, written: FusionData): number | null =>
    bytesOfAll(movedTensors(made, written, known, nvfuserLimits));
  const bytesOfChanged = (changed: FusionData): number | null => {
    const made = lowered(changed);
    return made === null ? null : bytesOf(made, changed);
  };
  const hasStreams = overlap !== false && before.tensors.some((tensor) => streamAxis(tensor) !== null);
  const now = bytesOf(decomposed, before);
  const judge = given ?? judgeOfBytes(now, bytesOfChanged);
  return [
    ...(hasStreams ? unfollowedInputs(placed, before) : []),
    ...(hasStreams ? gatheredStreams(placed, before, now, bytesOfChanged, judge) : []),
    ...gatheredIndices(decomposed, before, known, nvfuserLimits, judge),
    ...annotationConflicts(decomposed, before, known, nvfuserLimits, judge),
  ];
}

function sizeOf({ tensors }: FusionData, sizes: NamedNumbers): (name: string) => number | undefined {
  const known = new Map([...sizesFromMeshes(tensors), ...numbersByName(sizes)]);
  return (name) => known.get(name);
}
