/** Why communication of a Fusion is not in a loop, in which kernels would hide it. */
import type { HostProgram } from "../host/nodes.ts";
import { withNames } from "../ir/origin.ts";
import { type LoopRefusal, loopRefusals as refusalsIn } from "../passes/stream-loops/loop-refusals.ts";
import { streamParallelType } from "../passes/stream-loops/stream-parallel-type.ts";
import { type HasFusionData, lower, type LowerOptions, resolveLoweringOptions } from "./lower.ts";

/** In the order of the ops, with the user's names of tensors. Throws what `lower` throws. */
export function loopRefusals(
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
