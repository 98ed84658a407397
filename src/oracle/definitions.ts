/**
 * The definition of every op on elements (definitions/): plain, slow functions of JavaScript values. They import nothing from
 * numerics/scalar and ir/ops/functions, which define the same ops as expressions for kernel generators. The oracle uses
 * these functions, so `--check` shows a mistake in an expression; a test compares both over all dtypes and edges.
 *
 * Functions of floats take and return doubles, which `roundTo` rounds to the dtype. Functions of integers are exact on
 * bigints, and `wrap` brings the result to the dtype. Each row has the error bound of a correct back end.
 */
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../ir/ops/op.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import type { Value as Element } from "../numerics/tensor/storage.ts";
import { invariant } from "../support/invariant.ts";
import { binaryDefinitions, reductionDefinitions } from "./definitions/binary.ts";
import { normalDistribution, unaryDefinitions } from "./definitions/unary.ts";

export { binaryDefinitions, normalDistribution, reductionDefinitions, unaryDefinitions };

export function unaryOf(op: UnaryOpType, dtype: DType, x: Element): Element {
  const { float, integer } = unaryDefinitions[op];
  if (dtypes[dtype].family === "float") return roundTo(dtype, float(Number(x)));
  invariant(integer !== null, "a function of floats has a float operand", { op, dtype });
  return wrap(dtype, integer(BigInt(x)));
}

export function binaryOf(op: BinaryOpType, dtype: DType, x: Element, y: Element): Element {
  const { float, integer, compares } = binaryDefinitions[op];
  if (dtypes[dtype].family === "float") {
    invariant(float !== null, "a function of integers has operands of integers", { op, dtype });
    const result = float(Number(x), Number(y));
    return compares === true ? result : roundTo(dtype, result);
  }
  invariant(integer !== null, "a function of floats has float operands", { op, dtype });
  return wrap(compares === true ? "bool" : dtype, integer(BigInt(x), BigInt(y), 8 * dtypes[dtype].bytes));
}

/** A number that a program names, as an operand beside tensors of the dtype. 16-bit dtypes compute in float32. */
export function numberOf(dtype: DType, text: string): Element {
  if (dtype === "int64") return BigInt(text);
  return dtype === "double" || dtype === "int" ? Number(text) : Math.fround(Number(text));
}

/** A number that a program names, as an element. */
export function elementOf(dtype: DType, text: string): Element {
  if (dtype === "bool") return Number(text);
  const number = numberOf(dtype, text);
  return dtypes[dtype].family === "float" ? roundTo(dtype, Number(number)) : number;
}

/** Two elements, or an accumulator of the dtype and an element. */
export function combinationOf(op: ReductionOpType, dtype: DType, x: Element, y: Element): Element {
  const { float, integer } = reductionDefinitions[op];
  return dtypes[dtype].family === "float"
    ? roundTo(dtype, float(Number(x), Number(y)))
    : wrap(dtype, integer(BigInt(x), BigInt(y)));
}

/** Floats to integers truncate and saturate, NaN gives 0; integers wrap; to bool is x != 0. */
export function castOf(from: DType, to: DType, x: Element): Element {
  if (from === to) return x;
  if (to === "bool") return Number(x) === 0 ? 0 : 1;
  if (dtypes[to].family === "float") {
    if (typeof x === "number") return roundTo(to, x);
    return to === "double" ? Number(x) : roundTo(to, nearestFloat32(x));
  }
  if (dtypes[from].family !== "float") return wrap(to, BigInt(x));
  const number = Number(x);
  const bits = to === "int" ? 31n : 63n;
  if (Number.isNaN(number)) return wrap(to, 0n);
  if (number >= Number(2n ** bits)) return wrap(to, 2n ** bits - 1n);
  if (number <= -Number(2n ** bits)) return wrap(to, -(2n ** bits));
  return wrap(to, BigInt(Math.trunc(number)));
}

/** The element of an integer dtype: signed, modulo 2^32 or 2^64. */
export function wrap(dtype: DType, x: bigint): Element {
  if (dtype === "int64") return BigInt.asIntN(64, x);
  return Number(dtype === "bool" ? x : BigInt.asIntN(32, x));
}

/** Rounds a double to a float dtype, to nearest even; to packed dtypes through float32, as every op does. */
export function roundTo(dtype: DType, x: number): number {
  const { family, type, epsilon, lowest, most, finite } = dtypes[dtype];
  invariant(family === "float", "floats are rounded to floats", dtype);
  if (type === "f64") return x;
  const rounded = toPrecision(Math.fround(x), -Math.log2(epsilon), lowest, Number(most));
  return finite === true && !Number.isFinite(rounded) ? NaN : rounded;
}

/** Rounds to `bits` significant bits, to fewer below 2^lowest, and to infinity beyond `most`. */
function toPrecision(x: number, bits: number, lowest: number, most: number): number {
  const size = Math.abs(x);
  // NaN, too.
  if (!(size > 0 && size < Infinity)) return x;
  let exponent = Math.max(lowest, Math.floor(Math.log2(size)));
  // The logarithm may come out on the other side of a power of two.
  if (size >= 2 ** (exponent + 1)) exponent++;
  else if (size < 2 ** exponent && exponent > lowest) exponent--;
  const unit = 2 ** (exponent - bits + 1);
  // Exact: unit is a power of two.
  const units = size / unit;
  const below = Math.floor(units);
  const rest = units - below;
  const rounded = rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
  const result = rounded * unit > most ? Infinity : rounded * unit;
  return x < 0 ? -result : result;
}

/** The nearest float32, from the bits of the integer: going through double would round twice. */
function nearestFloat32(x: bigint): number {
  const size = x < 0n ? -x : x;
  const dropped = BigInt(Math.max(0, size.toString(2).length - 24));
  const unit = 1n << dropped;
  const below = size / unit;
  const rest = 2n * (size % unit);
  const rounded = rest > unit || (rest === unit && below % 2n === 1n) ? below + 1n : below;
  return Number(rounded * unit) * (x < 0n ? -1 : 1);
}
