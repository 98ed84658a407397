/** The dtype rules that the rows of ops use, and the promotion rule with which the API casts operands. */
import { computedFloats, type DType, dtypes, isComputed } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Tensor } from "../domain.ts";
import { type Call, reject } from "./call.ts";

/** The dtype of the first operand. */
export function operandDType(_: unknown, operands: readonly Tensor[]): DType {
  return at(operands, 0).dtype;
}

/** The dtype of the first operand, with which the op computes. Throws `dtype-mismatch`. */
export function computedDType(_: unknown, operands: readonly Tensor[], place: Call): DType {
  const { dtype } = at(operands, 0);
  requireComputed(dtype, place);
  return dtype;
}

/** The common dtype of all operands. Throws `dtype-mismatch`. */
export function commonDType(_: unknown, operands: readonly Tensor[], place: Call): DType {
  const { dtype } = at(operands, 0);
  if (operands.every((operand) => operand.dtype === dtype)) return dtype;
  return reject(place, "dtype-mismatch", "the operands have different dtypes", {
    found: operands.map((operand) => `T${operand.id} ${operand.dtype}`).join(", "),
    expected: "operands of one dtype",
    help: "convert with cast(tensor, dtype)",
  });
}

/** The common dtype of all operands, which must be a number type. Throws `dtype-mismatch`. */
export function numberDType(spec: unknown, operands: readonly Tensor[], place: Call): DType {
  const dtype = commonDType(spec, operands, place);
  requireNumber(dtype, place);
  return dtype;
}

/** The dtypes that an elementwise function takes: `number` is all but bool. */
export type OperandClass = "number" | "float" | "integer" | "bool" | "any";

/** The common dtype of the operands of a function of this class. Throws `dtype-mismatch`. */
export function functionDType(op: string, operand: OperandClass, operands: readonly Tensor[], place: Call): DType {
  const dtype = commonDType(op, operands, place);
  requireTaken(op, operand, dtype, place);
  return dtype;
}

/** Throws `dtype-mismatch` unless a function of this class takes the dtype. */
export function requireTaken(op: string, operand: OperandClass, dtype: DType, place: Call): void {
  requireComputed(dtype, place);
  const { family } = dtypes[dtype];
  if (operand === "any" || family === operand) return;
  if (operand === "bool" || (operand === "integer" && family === "float")) {
    const [expected, cast] = operand === "bool" ? ["bool", "bool"] : ["int or int64", "int64"];
    reject(place, "dtype-mismatch", `${op} of a tensor that is not ${operand === "bool" ? "bool" : "of integers"}`, {
      found: dtype,
      expected,
      help: `convert first, for example cast(tensor, "${cast}")`,
    });
  }
  requireNumber(dtype, place);
  if (operand === "float") requireFloat(dtype, op, place);
}

/** Throws `dtype-mismatch` for a dtype that only stores. */
export function requireComputed(dtype: DType, place: Call): void {
  if (isComputed(dtype)) return;
  reject(place, "dtype-mismatch", `${dtype} only stores numbers: nothing is computed with it`, {
    found: dtype,
    expected: computedFloats.join(", "),
    help: 'multiply it with its scale by scaledMatmul() or scaledLinear(), or convert it: cast(tensor, "float")',
  });
}

function requireNumber(dtype: DType, place: Call): void {
  requireComputed(dtype, place);
  if (dtypes[dtype].family !== "bool") return;
  reject(place, "dtype-mismatch", "arithmetic on bool", {
    found: "bool",
    expected: "a float or integer dtype",
    help: 'convert first, for example cast(tensor, "int")',
  });
}

/** Throws `dtype-mismatch`. */
export function requireFloat(dtype: DType, op: string, place: Call): void {
  requireComputed(dtype, place);
  if (dtypes[dtype].family === "float") return;
  reject(place, "dtype-mismatch", `${op} of a tensor that is not floating-point`, {
    found: dtype,
    expected: computedFloats.join(", "),
    help: 'convert first, for example cast(tensor, "float")',
  });
}

/**
 * The dtype of an elementwise op on `a` and `b`, as PyTorch and nvFuser promote tensors: the wider of the two, with
 * floats above integers above bool. half and bfloat16 promote to float, because neither covers the other's range and
 * precision.
 */
export function promoteDTypes(a: DType, b: DType): DType {
  if (a === b) return a;
  const [first, second] = [dtypes[a], dtypes[b]];
  if (first.family !== second.family) return second.family === "bool" || first.family === "float" ? a : b;
  if (first.bytes === second.bytes) return "float";
  return first.bytes > second.bytes ? a : b;
}
