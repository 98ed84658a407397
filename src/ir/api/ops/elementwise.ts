/** Arithmetic of two operands, and casts. They append the casts that convert their operands to one dtype. */
import { type DType, dtypes, isComputed } from "../../../numerics/dtype.ts";
import { requireDType } from "../fusion.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf, castTo, binary, type BinaryOperand } from "./apply.ts";

export type { BinaryOperand };

/**
 * The sum of operands of equal rank. An axis of extent 1, or one made by `broadcast`, broadcasts to the other's extent.
 * Operands of different dtypes are cast to the wider one, as in PyTorch. One operand may be a number, or a tensor
 * without axes. The result then has the other's dtype, but a fractional number makes integers float. Throws
 * `shape-mismatch`, `dtype-mismatch` (bool), `foreign-tensor`, `bad-argument`.
 */
export function add(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("add", a, b);
}

/** The difference. Shapes, dtypes and errors as in `add`. */
export function sub(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("sub", a, b);
}

/** The product. Shapes, dtypes and errors as in `add`. */
export function mul(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("mul", a, b);
}

/**
 * The quotient. Shapes, dtypes and errors as in `add`. Integers divide as in nvFuser's `div`: the quotient truncates
 * toward zero and is 0 for a zero divisor.
 */
export function div(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("div", a, b);
}

/**
 * Converts to `dtype`. It appends an op even if the dtypes are equal. Larger numbers become infinite, or NaN in
 * float8_e4m3fn, which has no infinities; with `saturate` the largest finite number. Throws `bad-argument`.
 */
export function cast(tensor: TensorView, dtype: DType, options: { readonly saturate?: boolean } = {}): TensorView {
  const place = callOf("cast", [tensor], dtype);
  requireDType(dtype, place);
  const { family, most } = dtypes[dtype];
  const saturates = options.saturate === true && family === "float";
  const source = isComputed(tensor.dtype) ? tensor : castTo(tensor, "float", place);
  const bounded = saturates ? binary("minimum", binary("maximum", source, -most), most) : tensor;
  return apply({ kind: "Cast", to: dtype }, [bounded], place);
}
