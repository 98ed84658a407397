/** What the operations of the Fusion API share: to append an op, and the text of the call for diagnostics. */
import type { DType } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type Call, type CallArgument, callOn } from "../../ops/call.ts";
import { broadcastSpec } from "../../ops/kinds/views/broadcast.ts";
import { type OpSpec, outputsOf } from "../../ops/op.ts";
import type { Scalar } from "../../scalar/scalar.ts";
import { type Extent, extentIn } from "../extent.ts";
import { addOp, type FusionBuilder, markTensor } from "../fusion-builder.ts";
import { commonBuilder, internals, requireTensor } from "../handle.ts";
import { TensorView } from "../tensor-view.ts";

/** Appends the op. Throws its diagnostics. */
export function apply(spec: OpSpec, operands: readonly TensorView[], place: Call): TensorView {
  return applyIn(commonBuilder(operands, place), spec, operands, place);
}

/** Appends an op that may have no operands. Throws its diagnostics. */
export function applyIn(
  builder: FusionBuilder,
  spec: OpSpec,
  operands: readonly TensorView[],
  place: Call,
): TensorView {
  const inputs = operands.map((operand) => operand[internals].id);
  const op = addOp(builder, spec, inputs, place);
  for (const id of outputsOf(op)) markTensor(builder, id);
  return new TensorView({ builder, id: op.output });
}

/** Appends an op of several outputs. Throws its diagnostics. */
export function applyAll(spec: OpSpec, operands: readonly TensorView[], place: Call): readonly TensorView[] {
  const builder = commonBuilder(operands, place);
  applyIn(builder, spec, operands, place);
  return outputsOf(at(builder.ops, builder.ops.length - 1)).map((id) => new TensorView({ builder, id }));
}

export function callOf(name: string, operands: readonly TensorView[], ...args: readonly CallArgument[]): Call {
  operands.forEach((operand, i) => {
    requireTensor(operand, name, i);
  });
  const { tensors } = at(operands, 0)[internals].builder;
  return callOn(tensors, name, () => [...operands.map((operand) => ({ tensor: operand.id })), ...args]);
}

export function castTo(tensor: TensorView, to: DType, place: Call): TensorView {
  return tensor.dtype === to ? tensor : apply({ kind: "Cast", to }, [tensor], place);
}

/** Gives a tensor without axes `rank` broadcast axes. */
export function stretchTo(tensor: TensorView, rank: number, place: Call): TensorView {
  if (tensor.rank === rank) return tensor;
  const flags = Array.from({ length: rank }, () => true);
  return apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
}

export function extentsIn(tensor: TensorView, extents: readonly Extent[], place: Call): readonly (number | Scalar)[] {
  return extents.map((extent) => extentIn(tensor[internals].builder, extent, place));
}
