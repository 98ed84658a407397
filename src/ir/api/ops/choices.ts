/** Comparisons, choices by a condition, and functions of bits. */
import { dtypes } from "../../../numerics/dtype.ts";
import { isNumber } from "../../ops/number-operand.ts";
import type { TensorView } from "../tensor-view.ts";
import { callOf, castTo, binary, type BinaryOperand, ternary } from "./apply.ts";
import { requireTaken } from "../../ops/dtype-rules.ts";
import { abs } from "./functions.ts";
import { mark } from "./compositions/compose.ts";

/** The larger element, NaN if either is NaN. Shapes, dtypes and errors as in `add`; takes bool. */
export function maximum(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("maximum", a, b);
}

/** The smaller element, NaN if either is NaN. Shapes, dtypes and errors as in `add`; takes bool. */
export function minimum(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("minimum", a, b);
}

/** Whether a = b, as bool; false for NaN. Shapes, casts and errors as in `add`; takes bool. */
export function eq(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("eq", a, b);
}

/** Whether a differs from b, as bool; true for NaN. Shapes, casts and errors as in `add`; takes bool. */
export function ne(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("ne", a, b);
}

/** Whether a < b, as bool; false for NaN. Shapes, casts and errors as in `add`; takes bool. */
export function lt(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("lt", a, b);
}

/** Whether a <= b, as bool; false for NaN. Shapes, casts and errors as in `add`; takes bool. */
export function le(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("le", a, b);
}

/** Whether a > b, as bool; false for NaN. Shapes, casts and errors as in `add`; takes bool. */
export function gt(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("gt", a, b);
}

/** Whether a >= b, as bool; false for NaN. Shapes, casts and errors as in `add`; takes bool. */
export function ge(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("ge", a, b);
}

/** `a && b` of bool. Shapes as in `add`. Throws `dtype-mismatch` for other dtypes. */
export function logicalAnd(a: TensorView, b: TensorView): TensorView {
  return binary("logicalAnd", a, b);
}

/** `a || b` of bool. Shapes and errors as in `logicalAnd`. */
export function logicalOr(a: TensorView, b: TensorView): TensorView {
  return binary("logicalOr", a, b);
}

/** Whether one of two bools is true. Shapes and errors as in `logicalAnd`. */
export function logicalXor(a: TensorView, b: TensorView): TensorView {
  const place = callOf("logicalXor", [a, b]);
  for (const { dtype } of [a, b]) requireTaken("logicalXor", "bool", dtype, place);
  return binary("ne", a, b);
}

/** The bits that both integers have. Shapes as in `add`. Throws `dtype-mismatch` for floats and bool. */
export function bitAnd(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("bitAnd", a, b);
}

/** The bits that either integer has. Shapes as in `add`. Throws `dtype-mismatch` for floats and bool. */
export function bitOr(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("bitOr", a, b);
}

/** The bits that one of two integers has. Shapes as in `add`. Throws `dtype-mismatch` for floats and bool. */
export function bitXor(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("bitXor", a, b);
}

/** a 2^b of integers, with b modulo the number of bits. Shapes as in `add`. Throws `dtype-mismatch` for floats and bool. */
export function shiftLeft(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("shiftLeft", a, b);
}

/** a / 2^b of integers, rounded down, with b modulo the number of bits. Shapes as in `add`. Throws `dtype-mismatch` for floats and bool. */
export function shiftRight(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("shiftRight", a, b);
}

/** a - b floor(a / b) of integers, which has the sign of b as in PyTorch; 0 for b = 0. Shapes as in `add`. Throws `dtype-mismatch` for floats and bool. */
export function remainder(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("remainder", a, b);
}

/**
 * Elements of `a` where `condition` (bool) is true, else of `b`. The values are cast to one dtype as in `add`, and all
 * three stretch to one shape. Either value, or both, may be a number; a NaN that is not taken does not matter.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function where(condition: TensorView, a: BinaryOperand, b: BinaryOperand): TensorView {
  if (!isNumber(a)) return ternary("where", condition, a, b);
  if (!isNumber(b)) return ternary("where", condition, b, a, true);
  const isWhole = [a, b].every((value) => typeof value === "bigint" || Number.isInteger(value));
  // Any tensor of the condition's shape will do as a value: its elements are not taken in the end.
  const values = castTo(condition, isWhole ? "int64" : "float", callOf("where", [condition]));
  return where(condition, a, where(condition, values, b));
}

/** Elements below `low` become `low`, then those above `high` become `high`. NaN stays NaN. Dtypes as in `add`. */
export function clamp(tensor: TensorView, low: BinaryOperand | null, high: BinaryOperand | null): TensorView {
  const raised = low === null ? tensor : maximum(tensor, low);
  const y = high === null ? raised : minimum(raised, high);
  if (y === tensor) return y;
  const operands = {
    x: tensor.id,
    ...(low === null || isNumber(low) ? {} : { low: low.id }),
    ...(high === null || isNumber(high) ? {} : { high: high.id }),
  };
  mark(y, { name: "clamp", operands, outputs: [y.id], kept: low === null ? [] : [raised.id], axes: [] });
  return y;
}

/** Whether an element is NaN. */
export function isnan(tensor: TensorView): TensorView {
  return ne(tensor, tensor);
}

/** Whether an element is Infinity or -Infinity. Throws `dtype-mismatch` for bool. */
export function isinf(tensor: TensorView): TensorView {
  return isFloat(tensor) ? eq(abs(tensor), Infinity) : ne(tensor, tensor);
}

/** Whether an element is neither infinite nor NaN. Throws `dtype-mismatch` for bool. */
export function isfinite(tensor: TensorView): TensorView {
  return isFloat(tensor) ? lt(abs(tensor), Infinity) : eq(tensor, tensor);
}

function isFloat({ dtype }: TensorView): boolean {
  return dtypes[dtype].family === "float";
}
