/**
 * The bias of a linear that devices share: added once, to the sum of their parts.
 *
 *   T3 = linear(T0, T1, T2)     ->     T4 = linear(T0, T1); ...; T5[b, N] = broadcast(T2); T3 = add(T4, T5)
 */
import { type AxisShape, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addTensor, type FusionEdit, partsOf, redomain } from "../edit/fusion-edit.ts";
import { moveTo, placementOf } from "./placement.ts";

/** `output` becomes `sum` plus `bias`, whose axes are the last of `sum`'s. */
export function addBias(edit: FusionEdit, sum: TensorId, bias: TensorId, output: Tensor): void {
  const axes = withoutReductions(output.domain.logical);
  redomain(
    edit,
    output,
    axes.map((axis) => ({ axis, model: partsOf(output, axis) })),
  );
  const own = withoutReductions(at(edit.tensors, bias).domain.logical);
  const missing = axes.length - own.length;
  const inputs = [sum, missing === 0 ? bias : broadcastBias(edit, bias, missing, output)];
  edit.ops.push({ kind: "Binary", op: "add", inputs, output: output.id });
}

/** The bias lies as the output does along the axes that it has. */
function broadcastBias(edit: FusionEdit, bias: TensorId, missing: number, output: Tensor): TensorId {
  const source = at(edit.tensors, bias);
  const own = withoutReductions(source.domain.logical);
  const flags = Array.from({ length: missing + own.length }, (_, i) => i < missing);
  const place = placementOf(
    output,
    withoutReductions(output.domain.logical).map((axis, i) => (i < missing ? null : axis)),
  );
  invariant(place !== null, "what is sharded lies on a mesh", { tensor: output.id });
  const unit: AxisShape = { extent: constant(1), iterType: "broadcast" };
  const stretched = addTensor(edit, source, [...Array.from({ length: missing }, () => unit), ...own], place.mesh);
  moveTo(edit, stretched, stretched.domain.logical, place, null);
  edit.ops.push({ kind: "Broadcast", flags, inputs: [bias], output: stretched.id });
  return stretched.id;
}
