/**
 * The definition of every op on elements (definitions/): plain, slow functions of JavaScript values. They import
 * nothing from numerics/scalar and ir/ops/functions, which define the same ops as expressions for kernel generators.
 * The oracle uses these functions, so `--check` shows a mistake in an expression; a test compares both over all dtypes
 * and edges.
 *
 * Functions of floats take and return doubles, which `roundTo` rounds to the dtype. Functions of integers are exact on
 * bigints, and `wrap` brings the result to the dtype. Each row has the error bound of a correct back end.
 */
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../ir/ops/op.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import type { Value as Element } from "../numerics/tensor/host-tensor.ts";
import { invariant } from "../support/invariant.ts";
import { binaryDefinitions, reductionDefinitions } from "./definitions/binary.ts";

/* Functions of one operand. */

interface UnaryDefinition {
  readonly float: (x: number) => number;
  /** Null for functions of floats alone. A bool is 0 or 1. */
  readonly integer: ((x: bigint) => bigint) | null;
  readonly error: UnaryError;
}

/**
 * The largest error of a correct back end, before it rounds to the dtype. `output` is the absolute value of the result.
 */
interface UnaryError {
  /** Number of roundings relative to `magnitude`: twice the ulps of the least accurate mathematical library. */
  readonly roundings: number;
  readonly magnitude: (input: number, output: number) => number;
  /** The largest change of the result when `input` changes by up to `by`. */
  readonly spread: (by: number, input: number, output: number) => number;
}

/** All back ends give the same result, and it changes as much as the operand. */
const exact: UnaryError = { roundings: 0, magnitude: () => 0, spread: (by) => by };

/** A function that never falls, which all back ends round correctly. */
function rising(float: (x: number) => number): UnaryDefinition {
  const spread: UnaryError["spread"] = (by, input) =>
    Math.max(float(input + by) - float(input), float(input) - float(input - by));
  return { float, integer: null, error: { ...exact, spread } };
}

/** A function of floats with an error relative to the result. */
function ofFloats(float: (x: number) => number, roundings: number, spread: UnaryError["spread"]): UnaryDefinition {
  return { float, integer: null, error: relative(roundings, spread) };
}

/** Relative to the result. */
function relative(roundings: number, spread: UnaryError["spread"]): UnaryError {
  return { roundings, magnitude: (_, output) => output, spread };
}

/** Of a function that rises or falls, where the operand stays in its domain. A tangent that falls has passed a pole. */
function moved(float: (x: number) => number): UnaryError["spread"] {
  return (by, input, output) => {
    const [below, at, above] = [float(input - by), float(input), float(input + by)];
    const isMonotonic = by < 1 && (below - at) * (at - above) >= 0;
    const size = Math.max(Math.abs(below - at), Math.abs(above - at));
    return Number.isNaN(size) || !isMonotonic ? (Number.isNaN(output) ? 0 : Infinity) : size;
  };
}

/** The largest change of log(x) when a positive x changes by up to `by`. */
function spreadOfLog(by: number, x: number): number {
  if (by < x) return Math.log1p(by / (x - by));
  return x + by < 0 ? 0 : Infinity;
}

/** Below 0, exp(x) / (1 + exp(x)) keeps the digits of small results. */
function logistic(x: number): number {
  return x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x));
}

function roundToEven(x: number): number {
  const below = Math.floor(x);
  // Also infinities and NaN.
  if (!(x - below > 0)) return x;
  const up = x - below > 0.5 || (x - below === 0.5 && below % 2 !== 0);
  const rounded = up ? below + 1 : below;
  return rounded === 0 && x < 0 ? -0 : rounded;
}

const unaryDefinitions: { readonly [Op in UnaryOpType]: UnaryDefinition } = {
  neg: { float: (x) => -x, integer: (x) => -x, error: exact },
  abs: { float: (x) => (x < 0 || Object.is(x, -0) ? -x : x), integer: (x) => (x < 0n ? -x : x), error: exact },
  /** NaN stays NaN; -0 becomes 0. */
  sign: { ...rising((x) => (x === 0 ? 0 : Math.sign(x))), integer: (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n) },
  logicalNot: { float: (x) => 1 - x, integer: (x) => (x === 0n ? 1n : 0n), error: exact },
  floor: rising(Math.floor),
  ceil: rising(Math.ceil),
  trunc: rising(Math.trunc),
  round: rising(roundToEven),
  /** NaN below 0; -0 stays -0. */
  sqrt: {
    float: Math.sqrt,
    integer: null,
    error: {
      ...exact,
      spread: (by, input, output) => {
        if (by <= input) return by / (output + Math.sqrt(input - by));
        return input + by < 0 ? 0 : Infinity;
      },
    },
  },
  /** Infinite with the sign of x at 0, NaN below. */
  rsqrt: ofFloats(
    (x) => 1 / Math.sqrt(x),
    4,
    (by, input, output) => (by < input ? (by * output) / (2 * (input - by)) : Infinity),
  ),
  exp: ofFloats(Math.exp, 4, (by, _, output) => output * Math.expm1(by)),
  exp2: ofFloats(
    (x) => 2 ** x,
    4,
    (by, _, output) => output * Math.expm1(by * Math.LN2),
  ),
  expm1: ofFloats(Math.expm1, 2, (by, input) => Math.exp(input) * Math.expm1(by)),
  /** -Infinity at 0, NaN below. */
  log: ofFloats(Math.log, 2, spreadOfLog),
  log2: ofFloats(Math.log2, 2, (by, x) => Math.LOG2E * spreadOfLog(by, x)),
  log1p: ofFloats(Math.log1p, 2, (by, input) => spreadOfLog(by, 1 + input)),
  sin: ofFloats(Math.sin, 4, (by) => by),
  cos: ofFloats(Math.cos, 4, (by) => by),
  tan: ofFloats(Math.tan, 8, moved(Math.tan)),
  asin: ofFloats(Math.asin, 4, moved(Math.asin)),
  acos: ofFloats(Math.acos, 4, moved(Math.acos)),
  atan: ofFloats(Math.atan, 4, (by) => by),
  sinh: ofFloats(Math.sinh, 6, moved(Math.sinh)),
  // The furthest from the lowest point is the steepest.
  cosh: ofFloats(Math.cosh, 4, (by, input) => Math.cosh(Math.abs(input) + by) - Math.cosh(input)),
  /** NaN stays NaN; -0 becomes 0. */
  relu: { float: (x) => (x > 0 || Number.isNaN(x) ? x : 0), integer: (x) => (x > 0n ? x : 0n), error: exact },
  /** x Phi(x). */
  gelu: {
    float: (x) => x * normalDistribution(x),
    integer: null,
    // 1 + erf cancels for negative inputs, so the error is relative to the input. The steepest slope of gelu is 1.129.
    error: { roundings: 4, magnitude: (input) => Math.abs(input), spread: (by) => 1.13 * by },
  },
  /** x (1 + tanh(y)) / 2 = x / (1 + exp(-2 y)). */
  geluTanh: {
    float: (x) => x * logistic(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)),
    integer: null,
    error: { roundings: 8, magnitude: (input) => Math.abs(input), spread: (by) => 1.13 * by },
  },
  sigmoid: ofFloats(logistic, 8, (by) => by / 4),
  silu: ofFloats(
    (x) => x * logistic(x),
    10,
    (by) => 1.1 * by,
  ),
  // 2 ulps of exp, 1 of log1p and half a unit of the sum; the slope is at most 1.
  softplus: ofFloats(
    (x) => (x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x))),
    7,
    (by) => by,
  ),
  tanh: ofFloats(Math.tanh, 4, (by) => by),
  erf: ofFloats(errorFunction, 4, (by) => 1.13 * by),
  /** 5 ulps of CUDA's normcdf and 2.5 of this one, in double. */
  normalCdf: ofFloats(normalDistribution, 15, (by) => 0.4 * by),
};

// Functions that JavaScript lacks, from their series.

/**
 * Phi(x), to 2.5 ulps. For u = |x| >= 0.7 the tail is the density divided by Laplace's continued fraction u + 1/(u +
 * 2/(u + 3/(u + ..))), of which double needs about 350 / u^2 terms. Below, it is 1/2 minus the density times u + u^3/3
 * + u^5/(3 5) + ..
 */
function normalDistribution(x: number): number {
  if (Number.isNaN(x)) return NaN;
  const u = Math.abs(x);
  if (u > 39) return x < 0 ? 0 : 1;
  const density = Math.exp((-u * u) / 2) / Math.sqrt(2 * Math.PI);
  let tail: number;
  if (u >= 0.7) {
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

/** For |x| < 1: 2 x / sqrt(pi) exp(-x^2) (1 + 2 x^2 / 3 (1 + 2 x^2 / 5 (1 + ..))). Beyond, from the tail of Phi. */
function errorFunction(x: number): number {
  const u = Math.abs(x);
  if (!(u < 1)) return Math.sign(x) * (1 - 2 * normalDistribution(-u * Math.SQRT2));
  let sum = 1;
  for (let odd = 61; odd > 1; odd -= 2) sum = 1 + ((2 * x * x) / odd) * sum;
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum * x;
}

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
  if (dtype === "float") return Math.fround(x);
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
