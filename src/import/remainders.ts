/** Remainders of divisions, of which each framework has its own. */
import { add, type BinaryOperand, div, gt, logicalAnd, logicalXor, lt, mul, ne, sub, where } from "../ir/api/ops.ts";
import { fmod } from "../ir/api/ops/powers.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";

/** Whether a remainder with the sign of the dividend must be moved to that of the divisor. */
export function isTurned(rest: TensorView, b: BinaryOperand): TensorView {
  if (typeof b !== "object") return b < 0 ? gt(rest, 0) : lt(rest, 0);
  return logicalAnd(ne(rest, 0), logicalXor(lt(rest, 0), lt(b, 0)));
}

/** a - b floor(a / b) of floats, by the remainder that is exact: the quotient rounds. */
export function floatModulo(a: BinaryOperand, b: BinaryOperand): TensorView {
  const rest = fmod(a, b);
  return where(isTurned(rest, b), add(rest, b), rest);
}

/** The remainder with the sign of the dividend, of integers, too. */
export function restOf(a: BinaryOperand, b: BinaryOperand, isInteger: boolean): TensorView {
  if (!isInteger) return fmod(a, b);
  return sub(a, mul(div(a, b), b));
}
