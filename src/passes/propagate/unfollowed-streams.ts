/**
 * Takes Stream away where it has spread to an axis along which the op cannot run chunk by chunk: an axis that it cuts
 * or makes, or that it reduces, unless chunks are accumulated. The user's own Stream stays, and lowering says what is
 * wrong with it.
 */
import { logicalAxisOf } from "../../ir/parts.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { type FusionEdit, reparallelize } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import { streamAxis } from "../../ir/stream.ts";

export function removeUnfollowedStreams(edit: FusionEdit, fusion: FusionData, options: LoweringOptions): void {
  for (const op of fusion.ops) {
    const output = at(edit.tensors, op.output);
    if (streamAxis(output) === null || streamAxis(at(fusion.tensors, op.output)) !== null) continue;
    if (canFollow(op, edit.tensors, options)) continue;
    for (const id of outputsOf(op)) {
      edit.tensors[id] = reparallelize(at(edit.tensors, id), ({ parallelType }) =>
        parallelType === "Stream" ? "Serial" : parallelType,
      );
    }
  }
}

function canFollow(op: Op, tensors: readonly Tensor[], { accumulate }: LoweringOptions): boolean {
  const output = at(tensors, op.output);
  const stream = streamAxis(output);
  const streamed = stream === null ? null : logicalAxisOf(output.domain, stream);
  if (streamed === null) return false;
  if (op.kind === "Full") return true;
  if (streamed.iterType === "reduction") return accumulate && (op.kind === "Matmul" || op.kind === "Linear");
  return axisMap(op, tensors).some(({ consumer }) => consumer.id === streamed.id);
}
