/** Brings the operands of elementwise functions to one dtype and rank. */
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type CallArgument, callOn } from "../../ops/call.ts";
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
import type { BinaryOpType, TernaryOpType } from "../../ops/op.ts";
import { commonBuilder, internals, requireTensor } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, castTo, stretchTo } from "./apply.ts";

/** An operand of a function of two operands, of which at least one is a tensor. */
export type BinaryOperand = TensorView | number | bigint;

/** `op` of tensors, of which one may be a number, cast to one dtype. A function of floats casts integers to float. */
export function binary(op: BinaryOpType, a: BinaryOperand, b: BinaryOperand): TensorView {
  const { tensors, number } = splitOperands(op, a, b);
  tensors.forEach((tensor, i) => {
    requireTensor(tensor, op, number.scalar?.position === 0 ? 1 : i);
  });
  const { tensors: all } = at(tensors, 0)[internals].builder;
  const place = callOn(all, op, () => operandArguments(tensors, number.scalar));
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
  const shown = values.map((value): CallArgument =>
    isNumber(value) ? { code: numberText(value) } : { tensor: value.id },
  );
  const place = callOn(condition[internals].builder.tensors, op, () => [{ tensor: condition.id }, ...shown]);
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
