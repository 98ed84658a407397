/** Removes ops that no output depends on. */
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import type { Pass } from "../pass.ts";

export const removeDeadOps: Pass<"fusion", "fusion"> = {
  name: "remove-dead-ops",
  from: "fusion",
  to: "fusion",
  run: withoutDeadOps,
};

export function withoutDeadOps(fusion: FusionData): FusionData {
  const needed = new Set<TensorId>(fusion.outputs);
  const live: Op[] = [];
  for (const op of fusion.ops.toReversed()) {
    if (!outputsOf(op).some((id) => needed.has(id))) continue;
    for (const input of op.inputs) needed.add(input);
    live.push(op);
  }
  return live.length === fusion.ops.length ? fusion : { ...fusion, ops: live.reverse() };
}
