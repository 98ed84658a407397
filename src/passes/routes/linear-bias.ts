/**
 * The bias of a linear whose sum is split among devices or chunks. It is removed from the partial sums and added once.
 *
 *   T3 = linear(T0, T1, T2)     ->     T4 = linear(T0, T1); ...; T5[b, N] = broadcast(T2); T3 = add(T4, T5)
 */
import { type AxisShape, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { layoutOf } from "../../ir/layout.ts";
import type { LinearOp, MatmulOp } from "../../ir/ops/op.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { at, invariant } from "../../support/invariant.ts";
import { redomain } from "../edit/split-axes.ts";
import { addSerialTensor, type FusionEdit } from "../edit/tensor-edit.ts";
import { moveTo } from "./layouts.ts";
import { cutOf } from "../../ir/parts.ts";

/** The op with only its two matrices. */
export function withoutBias<T extends MatmulOp | LinearOp>(op: T): T {
  return {
    ...op,
    inputs: op.inputs.slice(0, 2),
    ...(op.orders === undefined ? {} : { orders: op.orders.slice(0, 2) }),
  };
}

/** Makes `output` the sum of `sum` and `bias`, whose axes are the last of `sum`'s. */
export function addBias(edit: FusionEdit, sum: TensorId, bias: TensorId, output: Tensor): void {
  const axes = withoutReductions(output.domain.logical);
  redomain(
    edit,
    output,
    axes.map((axis) => ({ axis, model: cutOf(output.domain, axis) })),
  );
  const own = withoutReductions(at(edit.tensors, bias).domain.logical);
  const missing = axes.length - own.length;
  const inputs = [sum, missing === 0 ? bias : broadcastBias(edit, bias, missing, output)];
  edit.ops.push({ kind: "Binary", op: "add", inputs, output: output.id });
}

/** The bias with `missing` more axes in front, placed like the output along its own axes. */
function broadcastBias(edit: FusionEdit, bias: TensorId, missing: number, output: Tensor): TensorId {
  const source = at(edit.tensors, bias);
  const own = withoutReductions(source.domain.logical);
  const flags = Array.from({ length: missing + own.length }, (_, i) => i < missing);
  const place = layoutOf(
    output,
    withoutReductions(output.domain.logical).map((axis, i) => (i < missing ? null : axis)),
  );
  invariant(place !== null, "a sharded tensor has a mesh", { tensor: output.id });
  const unit: AxisShape = { extent: constant(1), iterType: "broadcast" };
  const shapes = [...Array.from({ length: missing }, () => unit), ...own];
  const stretched = addSerialTensor(edit, source, shapes, place.mesh, "broadcast");
  moveTo(edit, stretched, stretched.domain.logical, place, null);
  edit.ops.push({ kind: "Broadcast", flags, inputs: [bias], output: stretched.id });
  return stretched.id;
}
