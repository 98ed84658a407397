/**
 * Warnings about a sharded axis that an op indexes, where split-indices cannot leave it in shares: it is gathered. A
 * gather that costs less than sums over the devices is no fault, so each fix is tried.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { plainDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { originated, withNames } from "../../ir/origin.ts";
import { type CutAxis, cutOf } from "../../ir/parts.ts";
import { readsIndices } from "../../ir/runs.ts";
import { constantValue, foldCeilDiv } from "../../ir/scalar/fold.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { keepsOneRun, shardsOf } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { editFusion, redomain } from "../edit/tensor-edit.ts";
import { opText } from "../op-text.ts";
import { type Moved, movedTensors } from "./list-reshardings.ts";

/** `before` is the Fusion as the user wrote it, `fusion` after insert-routes. None whose fix `judge` finds no better. */
export function gatheredIndices(
  fusion: FusionData,
  before: FusionData,
  sizeOf: (name: string) => number | undefined,
  nvfuserLimits: boolean,
  judge: { readonly now: number | null; readonly better: (changed: FusionData) => number | null },
): readonly Diagnostic[] {
  const found = movedTensors(fusion, before, sizeOf, nvfuserLimits).flatMap((moved) => gathered(moved, fusion.tensors));
  return found.slice(0, mostTried).flatMap((each) => {
    const changed = fixedFusion(each, fusion, before);
    const isBetter = changed === null || judge.now === null || judge.better(changed) !== null;
    return isBetter ? [warning(each, fusion.tensors)] : [];
  });
}

export function isGatheredForIndices(moved: Moved, tensors: readonly Tensor[]): boolean {
  return gathered(moved, tensors).length > 0;
}

/** Each costs a lowering of the program. */
const mostTried = 3;

interface Gathered {
  readonly moved: Moved;
  readonly reader: Op & { readonly axis: number };
  readonly why: WhyGathered;
}

/** Empty unless the op that the tensor is gathered for indexes an axis of it. */
function gathered(moved: Moved, tensors: readonly Tensor[]): readonly Gathered[] {
  const { reader, isInserted, resharding } = moved;
  const { tensor: id } = resharding;
  if (reader === null || !isInserted || !readsIndices(reader) || reader.inputs.indexOf(id) === 1) return [];
  const why = whyGathered(at(tensors, id), reader);
  return why === null || !isIndexed(reader, id) ? [] : [{ moved, reader, why }];
}

/** Null if other sizes change what other ops compute, or if a pass made the tensor. */
function fixedFusion(
  { moved, reader, why: { fixed } }: Gathered,
  { tensors }: FusionData,
  before: FusionData,
): FusionData | null {
  const id = moved.resharding.tensor;
  const own = before.tensors[id];
  if (own === undefined) return null;
  const logical = withoutReductions(own.domain.logical);
  const isResized = constantValue(fixed.extent) !== constantValue(at(logical, reader.axis).extent);
  const readers = before.ops.filter(({ inputs }) => inputs.includes(id));
  // What an indexSelect makes does not have the axis.
  if (isResized && (!before.inputs.includes(id) || readers.length > 1 || reader.kind !== "IndexSelect")) return null;
  if (constantValue(fixed.extent) === null) return null;
  const placed = at(tensors, id);
  const axes = logical.map((axis, i) =>
    i === reader.axis
      ? { axis: { ...axis, extent: fixed.extent, parallelType: "Serial" as const }, model: fixed }
      : { axis: { ...axis, parallelType: "Serial" as const }, model: cutOf(own.domain, axis) },
  );
  const edit = editFusion(before);
  redomain(edit, { ...own, mesh: placed.mesh, domain: plainDomain(axes.map(({ axis }) => axis)) }, axes);
  return { ...before, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount };
}

function warning({ moved: { resharding }, reader, why }: Gathered, tensors: readonly Tensor[]): Diagnostic {
  const { tensor: id, bytes } = resharding;
  const about: Diagnostic = { code: "indexed-axis-gathered", message: `T${id}` };
  const { tensors: mentions } = originated(about, tensors, true);
  return {
    code: "indexed-axis-gathered",
    severity: "warning",
    message: `T${id} is gathered, because ${why.reason}`,
    place: { kind: "tensor", text: withNames(opText(reader), tensors) },
    found: `${bytes === null ? "an unknown number of" : bytes.toLocaleString("en-US")} bytes to a device`,
    expected: "an indexed axis in equal runs, of which each device reads or adds in its own",
    help: why.help,
    ...(mentions === undefined ? {} : { tensors: mentions }),
  };
}

interface WhyGathered {
  readonly reason: string;
  readonly help: string;
  /** The axis that is indexed, as the fix leaves it. */
  readonly fixed: CutAxis;
}

function isIndexed({ kind, inputs }: Op, id: TensorId): boolean {
  return id === inputs[0] || (kind === "ScatterAdd" && id === inputs[2]);
}

function whyGathered(tensor: Tensor, reader: Op & { readonly axis: number }): WhyGathered | null {
  const { kind, axis: number } = reader;
  const axis = at(withoutReductions(tensor.domain.logical), number);
  const [shard, ...others] = shardsOf(tensor).filter((each) => each.axis.id === axis.id);
  if (shard === undefined || shard.cut.parts.length === 1) return null;
  const extent = constantValue(axis.extent);
  const devices = tensor.mesh?.size(shard.type) ?? 1;
  const inRuns = (size: Scalar): CutAxis => {
    const [count, share] = [constant(devices), foldCeilDiv(size, constant(devices))];
    return {
      extent: size,
      parts: [
        { extent: count, stride: share, type: shard.type },
        { extent: share, stride: constant(1), type: "Serial" },
      ],
    };
  };
  if (others.length > 0 || !keepsOneRun(shard, devices)) {
    return {
      reason: `its axis ${number} is not cut once into runs`,
      help: `cut it with outerSplit(${number}, devices) alone`,
      fixed: inRuns(axis.extent),
    };
  }
  if (extent === null) {
    return {
      reason: `the extent of its axis ${number} is known only at run time`,
      help: `give it as a number: a multiple of ${devices}`,
      fixed: inRuns(axis.extent),
    };
  }
  if (extent % devices === 0) return null;
  const padded = Math.ceil(extent / devices) * devices;
  const masked = `${maskText(tensor, number, padded, extent)} in place of T${tensor.id}`;
  return {
    reason: `its axis ${number} has ${extent} indices, which ${devices} devices cannot share equally`,
    help:
      `give the inputs ${padded} instead of ${extent} (a pad() would gather it, too)` +
      (kind === "Gather" ? `; if these are logits, read ${masked}` : ""),
    fixed: inRuns(constant(padded)),
  };
}

/** Logits without the classes that pad them. `f` is the Fusion. */
function maskText({ id, domain }: Tensor, axis: number, padded: number, extent: number): string {
  const axes = withoutReductions(domain.logical).flatMap((_, i) => (i === axis ? [] : [i]));
  const isClass = axes.reduce((text, i) => `unsqueeze(${text}, ${i})`, `lt(iota(f, ${padded}), ${extent})`);
  return `where(${isClass}, T${id}, -Infinity)`;
}
