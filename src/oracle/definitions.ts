/**
 * The definition of every op on elements: plain, slow functions of JavaScript values. They import nothing from
 * numerics/scalar and ir/ops/functions, which define the same ops as expressions for kernel generators. The oracle uses
 * these functions, so `--check` shows a mistake in an expression; a test compares both over all dtypes and edges.
 *
 * Functions of floats take and return doubles, which `roundTo` rounds to the dtype. Functions of integers are exact on
 * bigints, and `wrap` brings the result to the dtype. Each row has the error bound of a correct back end.
 */
import { type DType, dtypes } from "../numerics/dtype.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../ir/ops/op.ts";
import type { Value as Element } from "../numerics/tensor/storage.ts";
import { invariant } from "../support/invariant.ts";

export interface UnaryDefinition {
  readonly float: (x: number) => number;
  /** Null for functions of floats alone. */
  readonly integer: ((x: bigint) => bigint) | null;
  readonly error: UnaryError;
}

/**
 * The largest error of a correct back end, before it rounds to the dtype. `output` is the absolute value of the result.
 */
export interface UnaryError {
  /** Number of roundings relative to `magnitude`: twice the ulps of the least accurate mathematical library. */
  readonly roundings: number;
  readonly magnitude: (input: number, output: number) => number;
  /** The largest change of the result when `input` changes by up to `by`. */
  readonly spread: (by: number, input: number, output: number) => number;
}

/** All back ends give the same result, and it changes as much as the operand. */
const exact: UnaryError = { roundings: 0, magnitude: () => 0, spread: (by) => by };

export const unaryDefinitions: { readonly [Op in UnaryOpType]: UnaryDefinition } = {
  neg: { float: (x) => -x, integer: (x) => -x, error: exact },
  abs: {
    float: (x) => (x < 0 || Object.is(x, -0) ? -x : x),
    integer: (x) => (x < 0n ? -x : x),
    error: exact,
  },
  /** NaN stays NaN; -0 becomes 0. */
  relu: {
    float: (x) => (x > 0 || Number.isNaN(x) ? x : 0),
    integer: (x) => (x > 0n ? x : 0n),
    error: exact,
  },
  /** x Phi(x). */
  gelu: {
    float: (x) => x * normalDistribution(x),
    integer: null,
    // 1 + erf cancels for negative inputs, so the error is relative to the input. The steepest slope of gelu is 1.129.
    error: { roundings: 4, magnitude: (input) => Math.abs(input), spread: (by) => 1.13 * by },
  },
  exp: {
    float: Math.exp,
    integer: null,
    error: {
      roundings: 4,
      magnitude: (_, output) => output,
      spread: (by, _, output) => output * Math.expm1(by),
    },
  },
  tanh: {
    float: Math.tanh,
    integer: null,
    error: { roundings: 4, magnitude: (_, output) => output, spread: (by) => by },
  },
  /** Infinite with the sign of x at 0, NaN below. */
  rsqrt: {
    float: (x) => 1 / Math.sqrt(x),
    integer: null,
    error: {
      roundings: 4,
      magnitude: (_, output) => output,
      spread: (by, input, output) => (by < input ? (by * output) / (2 * (input - by)) : Infinity),
    },
  },
};

export interface BinaryDefinition {
  readonly float: (x: number, y: number) => number;
  readonly integer: (x: bigint, y: bigint) => bigint;
  /** The largest change of the result for given changes of the operands. Integer results are `truncated`. */
  readonly spread: (x: Moved, y: Moved, truncated: boolean) => number;
}

/** The absolute value of an operand and the largest change of the operand. */
export interface Moved {
  readonly size: number;
  readonly by: number;
}

/** Computed in double. Rounding to float32 then gives the correct float32 result, because 53 >= 2 * 24 + 2 bits. */
export const binaryDefinitions: { readonly [Op in BinaryOpType]: BinaryDefinition } = {
  add: { float: (x, y) => x + y, integer: (x, y) => x + y, spread: (x, y) => x.by + y.by },
  sub: { float: (x, y) => x - y, integer: (x, y) => x - y, spread: (x, y) => x.by + y.by },
  mul: {
    float: (x, y) => x * y,
    integer: (x, y) => x * y,
    spread: (x, y) => x.size * y.by + y.size * x.by + x.by * y.by,
  },
  /** Integers truncate toward zero, and x / 0 is 0. */
  div: {
    float: (x, y) => x / y,
    integer: (x, y) => (y === 0n ? 0n : x / y),
    // |x/y - x'/y'|, for y' bounded away from 0.
    spread: (x, y, truncated) =>
      y.size <= y.by ? Infinity : ((x.size / y.size) * y.by + x.by) / (y.size - y.by) + (truncated ? 1 : 0),
  },
};

export interface ReductionDefinition {
  readonly float: (x: number, y: number) => number;
  readonly integer: (x: bigint, y: bigint) => bigint;
  /** How roundings accumulate. null if the result is one of the elements, and exact. */
  readonly accumulates: "sum" | "product" | null;
}

/** Of bool, amax is `or` and amin `and`. */
export const reductionDefinitions: { readonly [Op in ReductionOpType]: ReductionDefinition } = {
  sum: { float: (x, y) => x + y, integer: (x, y) => x + y, accumulates: "sum" },
  prod: { float: (x, y) => x * y, integer: (x, y) => x * y, accumulates: "product" },
  /** NaN if either is; -0 is below 0. */
  amax: { float: (x, y) => extremum(x, y, x > y, 0), integer: (x, y) => (x > y ? x : y), accumulates: null },
  amin: { float: (x, y) => extremum(x, y, x < y, -0), integer: (x, y) => (x < y ? x : y), accumulates: null },
};

function extremum(x: number, y: number, isFirst: boolean, zero: number): number {
  if (Number.isNaN(x) || Number.isNaN(y)) return NaN;
  if (x === 0 && y === 0) return Object.is(x, zero) ? x : y;
  return isFirst ? x : y;
}

export function unaryOf(op: UnaryOpType, dtype: DType, x: Element): Element {
  const { float, integer } = unaryDefinitions[op];
  if (dtypes[dtype].family === "float") return roundTo(dtype, float(Number(x)));
  invariant(integer !== null, "a function of floats has a float operand", { op, dtype });
  return wrap(dtype, integer(BigInt(x)));
}

export function binaryOf(op: BinaryOpType, dtype: DType, x: Element, y: Element): Element {
  const { float, integer } = binaryDefinitions[op];
  return dtypes[dtype].family === "float"
    ? roundTo(dtype, float(Number(x), Number(y)))
    : wrap(dtype, integer(BigInt(x), BigInt(y)));
}

/** A number that a program names, as an operand beside tensors of the dtype. 16-bit dtypes compute in float32. */
export function numberOf(dtype: DType, text: string): Element {
  if (dtype === "int64") return BigInt(text);
  return dtype === "double" || dtype === "int" ? Number(text) : Math.fround(Number(text));
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

/** Rounds a double to a float dtype, to nearest even; to half and bfloat16 through float32, as every op does. */
export function roundTo(dtype: DType, x: number): number {
  switch (dtype) {
    case "double":
      return x;
    case "float":
      return Math.fround(x);
    case "half":
      return toPrecision(Math.fround(x), 11, -14, 65504);
    case "bfloat16":
      return toPrecision(Math.fround(x), 8, -126, (2 - 2 ** -7) * 2 ** 127);
    case "int":
    case "int64":
    case "bool":
      invariant(false, "floats are rounded to floats", dtype);
  }
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

/**
 * Phi(x). For u = |x| >= 1 the tail is the density divided by Laplace's continued fraction u + 1/(u + 2/(u + 3/(u +
 * ..))), of which double needs about 350 / u^2 terms. Below, it is 1/2 minus the density times u + u^3/3 + u^5/(3 5) +
 * ..
 */
export function normalDistribution(x: number): number {
  if (Number.isNaN(x)) return NaN;
  const u = Math.abs(x);
  if (u > 39) return x < 0 ? 0 : 1;
  const density = Math.exp((-u * u) / 2) / Math.sqrt(2 * Math.PI);
  let tail: number;
  if (u >= 1) {
    let fraction = u;
    for (let term = Math.ceil(40 + 400 / (u * u)); term > 0; term--) fraction = u + term / fraction;
    tail = density / fraction;
  } else {
    let [term, sum] = [u, 0];
    for (let odd = 3; sum + term !== sum; odd += 2) {
      sum += term;
      term *= (u * u) / odd;
    }
    tail = 0.5 - density * sum;
  }
  return x < 0 ? tail : 1 - tail;
}
