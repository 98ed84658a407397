/** What the operations of the Fusion API share: to append an op, and the text of the call for diagnostics. */
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type Call, type CallArgument, callOn } from "../../ops/call.ts";
import { broadcastSpec } from "../../ops/kinds/views/broadcast.ts";
import { type OpSpec, outputsOf, type BinaryOpType, type TernaryOpType } from "../../ops/op.ts";
import type { Scalar } from "../../scalar/scalar.ts";
import { type Extent, extentIn } from "../extent.ts";
import { addOp, type FusionBuilder, markTensor } from "../fusion-builder.ts";
import { argumentOf, commonBuilder, internals, requireTensor } from "../handle.ts";
import { TensorView } from "../tensor-view.ts";
import { promoteDTypes, requireComputed, requireTaken } from "../../ops/dtype-rules.ts";
import { binaryFunctions } from "../../ops/functions/binary.ts";
import { binaryAxes, joinedAxes } from "../../ops/kinds/elementwise.ts";
import {
  isNumber,
  type NumberOperand,
  numberText,
  operandArguments,
  promoteNumber,
  requireNumberFits,
  splitOperands,
} from "../../ops/number-operand.ts";

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
  const { builder } = at(operands, 0)[internals];
  return callOn(builder.tensors, name, () => [...operands.map((operand) => argumentOf(operand, builder)), ...args]);
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

/* Brings the operands of elementwise functions to one dtype and rank. */

/** An operand of a function of two operands, of which at least one is a tensor. */
export type BinaryOperand = TensorView | number | bigint;

/** `op` of tensors, of which one may be a number, cast to one dtype. A function of floats casts integers to float. */
export function binary(op: BinaryOpType, a: BinaryOperand, b: BinaryOperand): TensorView {
  const { tensors, number } = splitOperands(op, a, b);
  tensors.forEach((tensor, i) => {
    requireTensor(tensor, op, number.scalar?.position === 0 ? 1 : i);
  });
  const { builder } = at(tensors, 0)[internals];
  const shown = (): readonly CallArgument[] => tensors.map((tensor) => argumentOf(tensor, builder));
  const place = callOn(builder.tensors, op, () => operandArguments(shown(), number.scalar));
  commonBuilder(tensors, place);
  for (const { dtype } of tensors) requireComputed(dtype, place);
  const first = at(tensors, 0);
  const second = tensors[1] ?? first;
  const { scalar } = number;
  // Checked before the casts are appended, so that a failing call changes nothing.
  if (first.rank > 0 && second.rank > 0) binaryAxes(first.data(), second.data(), place);
  const common = scalar === undefined ? commonDType(first, second) : promoteNumber(first.dtype, scalar);
  const { operand } = binaryFunctions[op];
  const dtype = operand === "float" && dtypes[common].family === "integer" ? "float" : common;
  if (scalar !== undefined) requireNumberFits(scalar, dtype, place);
  requireTaken(op, operand, dtype, place);
  const rank = Math.max(first.rank, second.rank);
  const operands = tensors.map((tensor) => stretchTo(castTo(tensor, dtype, place), rank, place));
  return apply({ kind: "Binary", op, ...number }, operands, place);
}

/** As in PyTorch, a tensor without axes does not widen a dtype of its family. */
function commonDType(a: TensorView, b: TensorView): DType {
  const common = promoteDTypes(a.dtype, b.dtype);
  if ((a.rank === 0) === (b.rank === 0)) return common;
  const { dtype } = a.rank === 0 ? b : a;
  return dtypes[dtype].family === dtypes[common].family ? dtype : common;
}

/** `op` of a condition and two values cast to one dtype, of which one may be a number. */
export function ternary(
  op: TernaryOpType,
  condition: TensorView,
  a: TensorView,
  b: BinaryOperand,
  swapped = false,
): TensorView {
  const values: readonly BinaryOperand[] = swapped ? [b, a] : [a, b];
  const tensors = [condition, ...values.flatMap((value) => (isNumber(value) ? [] : [value]))];
  for (const [i, tensor] of tensors.entries()) requireTensor(tensor, op, i);
  const { builder } = condition[internals];
  const place = callOn(builder.tensors, op, () =>
    [condition, ...values].map((value) => (isNumber(value) ? { code: numberText(value) } : argumentOf(value, builder))),
  );
  commonBuilder(tensors, place);
  for (const { dtype } of tensors) requireComputed(dtype, place);
  const scalar: NumberOperand<1 | 2> | undefined = isNumber(b)
    ? { position: swapped ? 1 : 2, text: numberText(b) }
    : undefined;
  const dtype = isNumber(b) ? promoteNumber(a.dtype, { position: 1, text: numberText(b) }) : commonDType(a, b);
  if (scalar !== undefined) requireNumberFits(scalar, dtype, place);
  requireTaken(op, "bool", condition.dtype, place);
  const ranked = tensors.filter((tensor) => tensor.rank > 0).map((tensor) => tensor.data());
  if (ranked.length > 1) joinedAxes(ranked, place);
  const rank = Math.max(...tensors.map((tensor) => tensor.rank));
  const operands = tensors.map((tensor, i) => stretchTo(i === 0 ? tensor : castTo(tensor, dtype, place), rank, place));
  return apply({ kind: "Ternary", op, ...(scalar === undefined ? {} : { scalar }) }, operands, place);
}
