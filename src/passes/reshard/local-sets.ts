/**
 * Marks Sets that need no communication: on one mesh, every device already has all of what it gets.
 *
 *   T1[DIDx, _] = Set(T0[_, _])     ->     T1[DIDx, _] = local Set(T0[_, _]), a view of the device's own part
 *
 * nvFuser makes a Scatter of it, which sends bytes that every device has.
 */
import type { Tensor } from "../../ir/domain.ts";
import { coversShares, layoutOf } from "../../ir/layout.ts";
import type { Op, SetOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";
import { isResharding, sameMesh } from "./sharding.ts";

export const localSets: Pass<"checked", "checked"> = {
  name: "local-sets",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    if (options.nvfuserLimits) return fusion;
    const ops = fusion.ops.map((op): Op => (isLocal(op, fusion.tensors) ? { ...op, local: true } : op));
    return ops.every((op, i) => op === fusion.ops[i]) ? fusion : { ...fusion, ops };
  },
};

/** Whether the operand is cut as the output is, and the output may be cut further. */
function isLocal(op: Op, tensors: readonly Tensor[]): op is SetOp {
  if (op.kind !== "Set" || !isResharding(op, tensors)) return false;
  const [source, output] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  if (!sameMesh(source.mesh, output.mesh)) return false;
  const [from, to] = [layoutOf(source), layoutOf(output)];
  return from === null || to === null || coversShares(from, to);
}
