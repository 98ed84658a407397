/**
 * Takes Stream away where it has spread to an axis along which the op cannot run chunk by chunk: an axis that it cuts
 * or makes, or that it reduces, unless chunks are accumulated. The user's own Stream stays, and lowering says what is
 * wrong with it.
 */
import { axisParts } from "../../ir/axis-shards.ts";
import type { IterDomain, Tensor } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { type FusionEdit, reparallelize } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";

export function removeUnfollowedStreams(edit: FusionEdit, fusion: FusionData, options: LoweringOptions): void {
  for (const op of fusion.ops) {
    const output = at(edit.tensors, op.output);
    if (!hasStream(output) || hasStream(at(fusion.tensors, op.output))) continue;
    if (canFollow(op, edit.tensors, options)) continue;
    edit.tensors[output.id] = reparallelize(output, ({ parallelType }) =>
      parallelType === "Stream" ? "Serial" : parallelType,
    );
  }
}

function canFollow(op: Op, tensors: readonly Tensor[], { accumulate }: LoweringOptions): boolean {
  const streamed = streamedAxis(at(tensors, op.output));
  if (streamed === null) return false;
  if (streamed.iterType === "reduction") return accumulate && (op.kind === "Matmul" || op.kind === "Linear");
  return axisMap(op, tensors).some(({ consumer }) => consumer.id === streamed.id);
}

/** The logical axis that has Stream, or a part with it. */
function streamedAxis({ domain }: Tensor): IterDomain | null {
  const isStreamed = (axis: IterDomain): boolean =>
    axisParts(domain, axis).some(({ parallelType }) => parallelType === "Stream");
  return domain.logical.find(isStreamed) ?? null;
}

function hasStream({ domain }: Tensor): boolean {
  return domain.loop.some(({ parallelType }) => parallelType === "Stream");
}
