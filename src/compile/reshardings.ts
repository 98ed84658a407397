/** The communication that shardings make necessary, before it becomes a host program. */
import type { HostProgram } from "../host/nodes.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { spokenName, withNames } from "../ir/origin.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import { listReshardings, type Resharding } from "../passes/moves/list-reshardings.ts";
import { type LoopRefusal, loopRefusals as refusalsIn } from "../passes/stream-loops/loop-refusals.ts";
import { streamParallelType } from "../passes/stream-loops/stream-parallel-type.ts";
import { at } from "../support/invariant.ts";
import {
  decomposedData,
  type HasFusionData,
  lower,
  type LowerOptions,
  lowerRanks,
  resolveLoweringOptions,
} from "./lower.ts";
import { type NamedNumbers, numbersByName } from "./record.ts";

export interface ReshardingsOptions extends Omit<LowerOptions, "rank" | "onPass"> {
  /** Sizes of symbolic extents in elements, by printed name (`i0`). */
  readonly sizes?: NamedNumbers;
}

/**
 * What moves between devices and why, in the order of the ops: each entry is one collective, or one per chunk. Bytes
 * are null where a size is unknown. Throws what `lower` throws.
 */
export function reshardings(fusion: HasFusionData, options: ReshardingsOptions = {}): readonly Resharding[] {
  const { sizes: _, ...lowering } = options;
  return listed(fusion.data(), lowerRanks(fusion, 1, lowering).decomposed, options);
}

/**
 * The same of a Fusion that lowering takes with these options: not all of its passes run again, and none if `decomposed`
 * is given, as they left it.
 */
export function reshardingsOfLowered(
  fusion: HasFusionData,
  options: ReshardingsOptions,
  decomposed?: FusionData,
): readonly Resharding[] {
  const { sizes: _, ...lowering } = options;
  return listed(fusion.data(), decomposed ?? decomposedData(fusion, lowering).decomposed, options);
}

function listed(
  before: FusionData,
  decomposed: FusionData,
  { sizes = {}, nvfuserLimits = false }: ReshardingsOptions,
): readonly Resharding[] {
  const known = new Map([...sizesFromMeshes(before.tensors), ...numbersByName(sizes)]);
  return listReshardings(decomposed, before, (name) => known.get(name), nvfuserLimits).map((each) => {
    const name = spokenName(at(decomposed.tensors, each.tensor));
    const named = (text: string): string => withNames(text, decomposed.tensors);
    return {
      ...each,
      ...(name === null ? {} : { name }),
      reason: named(each.reason),
      ...(each.hint === undefined ? {} : { hint: named(each.hint) }),
    };
  });
}

// Why communication of a Fusion is not in a loop, in which kernels would hide it.

/** In the order of the ops, with the user's names of tensors. Throws what `lower` throws. */
export function refusedLoops(
  fusion: HasFusionData,
  options: Omit<LowerOptions, "rank" | "onPass"> = {},
): readonly LoopRefusal[] {
  let [before, found]: [HostProgram | null, HostProgram | null] = [null, null];
  lower(fusion, {
    ...options,
    onPass: ({ pass, program }) => {
      if (!("body" in program)) return;
      if (pass === streamParallelType.name) found = before;
      before = program;
    },
  });
  if (found === null) return [];
  const { tensors }: HostProgram = found;
  return refusalsIn(found, fusion.data(), resolveLoweringOptions(options)).map((refusal) => ({
    ...refusal,
    op: withNames(refusal.op, tensors),
    beside: withNames(refusal.beside, tensors),
    because: withNames(refusal.because, tensors),
  }));
}
