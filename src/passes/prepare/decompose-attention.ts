/**
 * With attention "ops", writes attention as matmuls and a softmax; with "auto", attention that no kernel takes.
 *
 *   T3, T4 = sdpa(T0, T1, T2)
 * becomes
 *   T5 = matmul(T0, permute(T1)); T6 = mul(T5, 0.25); ..; T3 = div(..); T4 = add(..)
 *
 * Back ends without a kernel of attention need it.
 */
import { builderFrom, type FusionBuilder, snapshotFusion } from "../../ir/api/fusion-builder.ts";
import { withoutDeadOps } from "../../ir/fusion-data.ts";
import { set } from "../../ir/api/ops.ts";
import { attentionGradientOps, attentionOps, furtherOperand } from "../../ir/api/ops/compositions/attention.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { isAttentionOp, obstacleOfOp } from "../../ir/ops/kinds/attention/cudnn-obstacle.ts";
import { type Op, outputsOf, type SdpaBackwardOp, type SdpaOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";

export const decomposeAttention: Pass<"fusion", "fusion"> = {
  name: "decompose-attention",
  from: "fusion",
  to: "fusion",
  run: (fusion, { options }) => {
    const { attention } = options;
    const isWritten = (op: Op): op is SdpaOp | SdpaBackwardOp =>
      isAttentionOp(op) && (attention === "ops" || (attention === "auto" && obstacleOfOp(fusion, op) !== null));
    if (!fusion.ops.some(isWritten)) return fusion;
    const builder = builderFrom({ ...fusion, ops: [] });
    for (const op of fusion.ops) {
      if (isWritten(op)) appendOps(builder, op);
      else builder.ops.push(op);
    }
    return withoutDeadOps(snapshotFusion(builder));
  },
};

/** Appends ops of which the last ones write the tensors that `op` writes. */
function appendOps(builder: FusionBuilder, op: SdpaOp | SdpaBackwardOp): void {
  const before = builder.ops.length;
  const made = resultsOf(builder, op).map((result) => (hasReducedAxes(result) ? set(result) : result).id);
  const names = new Map<TensorId, TensorId>(made.map((id, i) => [id, at(outputsOf(op), i)]));
  const rename = (id: TensorId): TensorId => names.get(id) ?? id;
  for (const each of builder.ops.splice(before)) {
    builder.ops.push({ ...each, inputs: each.inputs.map(rename), output: rename(each.output) });
  }
}

function resultsOf(builder: FusionBuilder, op: SdpaOp | SdpaBackwardOp): readonly TensorView[] {
  const operand = (position: number): TensorView => new TensorView({ builder, id: at(op.inputs, position) });
  const attributes = { causal: op.causal, window: op.window, scale: op.scale === null ? null : Number(op.scale) };
  const [first, count] = op.kind === "Sdpa" ? [0, 3] : [1, 6];
  const q = operand(first);
  const all = { ...attributes, ...furtherOperand(op.inputs.length > count ? operand(count) : undefined, q) };
  if (op.kind === "Sdpa") {
    const { output, logsumexp } = attentionOps([q, operand(1), operand(2)], all);
    return [output, logsumexp];
  }
  const results = { output: operand(4), logsumexp: operand(5) };
  const { dq, dk, dv } = attentionGradientOps(operand(0), [q, operand(2), operand(3)], results, all);
  return [dq, dk, dv];
}

/** The tensors of attention have no reduced axes. */
function hasReducedAxes(tensor: TensorView): boolean {
  return tensor.data().domain.logical.some(({ iterType }) => iterType === "reduction");
}
