/** Emits scalar expressions as JavaScript text. i64 values are bigints, all others numbers. */
import { at, invariant, unreachable, keysOf } from "../../support/invariant.ts";
import { bitsToFloat, floatToBits, packings, roundPacked } from "../convert.ts";
import { dtypes, isPacked } from "../dtype.ts";
import type { Value } from "../tensor/host-tensor.ts";
import { type Comparison, definitionOf, type Expression, type Primitive, type ScalarType } from "./expression.ts";

/**
 * The cumulative distribution function of the normal distribution, for gelu:
 * gelu(x) = x * normalCdf(x) = x * (1 + erf(x / sqrt(2))) / 2.
 *
 * With u = |x|, the function (1 + 1.25 u) * exp(u^2 / 2) * normalCdf(-u) is a Chebyshev series in t = (u - 5) / (u +
 * 5), which maps u >= 0 to [-1, 1). The form is from Shepherd and Laframboise, "Chebyshev approximation of (1+2x)
 * exp(x^2) erfc x in 0 <= x < inf" (Math. Comp. 36, 1981). The coefficients were interpolated at 60 points in 60-digit
 * arithmetic and cut where the rest is below 2^-57. Unlike 1 + erf, the result keeps its relative accuracy in the lower
 * tail: wherever it is a normal double, the relative error is below 8 * 2^-53 (measured at 6,000 points: 6.0).
 */
/** Of T0, T2, T4 and so on. */
const evenCoefficients = Float64Array.of(
  0.5385288138992342,
  -0.028386077272723416,
  -0.010014371788857852,
  -0.0007773358378847752,
  -1.2492600229847826e-5,
  3.951505696905665e-7,
  -6.3517209623716656e-9,
  5.119550416240489e-11,
  1.4153040384573e-12,
  -1.0696250192131425e-13,
  4.604424764513564e-15,
  -1.5321124561749416e-16,
  2.996126874418231e-18,
);

/** Of T1, T3, T5 and so on. */
const oddCoefficients = Float64Array.of(
  -0.02645925107935259,
  0.022438833059881966,
  0.0032270946077398253,
  0.00013291756873865117,
  -6.331162602793908e-7,
  -3.7434383155557186e-8,
  1.6999795574677543e-9,
  -5.7296362937918556e-11,
  1.9141195007673026e-12,
  -6.892737587234324e-14,
  2.7324224089305913e-15,
  -1.174225371662994e-16,
  5.276781438013796e-18,
);

/** For u above this, the lower tail is 0 in double. */
const underflow = 38.6;

/** In double: 0 at -Infinity, 1 at Infinity, NaN at NaN. */
export function normalCdf(x: number): number {
  const u = Math.abs(x);
  if (u > underflow) return x < 0 ? 0 : 1;
  const t = (u - 5) / (u + 5);
  const series = chebyshev(t);
  // exp(-u^2 / 2) with u^2 exact in two terms: the float32 nearest to u has an exact square.
  const high = Math.fround(u);
  const low = u - high;
  const leading = Math.exp(-0.5 * high * high);
  const gaussian = low === 0 ? leading : leading * Math.exp(-0.5 * low * (u + high));
  const tail = (series * gaussian) / (1 + 1.25 * u);
  return x < 0 ? tail : 1 - tail;
}

/**
 * The series at t, by Clenshaw's recurrence over s = 2 t^2 - 1, separately for even and odd terms: T[2j](t) = T[j](s),
 * and T[2j+1](t) = t V[j](s) with the Chebyshev polynomials V of the third kind. The two chains of dependent operations
 * are half as long and run in parallel.
 */
function chebyshev(t: number): number {
  const twice = 4 * t * t - 2;
  let even = 0;
  let evenBefore = 0;
  let odd = 0;
  let oddBefore = 0;
  for (let j = evenCoefficients.length - 1; j > 0; j--) {
    const nextEven = twice * even + ((evenCoefficients[j] ?? NaN) - evenBefore);
    const nextOdd = twice * odd + ((oddCoefficients[j] ?? NaN) - oddBefore);
    evenBefore = even;
    oddBefore = odd;
    even = nextEven;
    odd = nextOdd;
  }
  const evenSum = 0.5 * twice * even + ((evenCoefficients[0] ?? NaN) - evenBefore);
  const oddFirst = twice * odd + ((oddCoefficients[0] ?? NaN) - oddBefore);
  return evenSum + t * (oddFirst - odd);
}

// Functions of integers that generated JavaScript calls, and conversions to and from floats.

/** The high word of the product of two words without sign. Every term is below 2^32, so the doubles are exact. */
function mulHigh(x: number, y: number): number {
  const [a, b, c, d] = [x >>> 16, x & 0xffff, y >>> 16, y & 0xffff];
  const middle = a * d + ((b * d) >>> 16);
  return (a * c + (middle >>> 16) + ((b * c + (middle & 0xffff)) >>> 16)) | 0;
}

/** i32.trunc_sat_f64_s. */
export function truncateToInt(x: number): number {
  if (x >= 0x7fff_ffff) return 0x7fff_ffff;
  if (x <= -0x8000_0000) return -0x8000_0000;
  return x | 0;
}

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

/** i64.trunc_sat_f64_s. */
export function truncateToInt64(x: number): bigint {
  if (Number.isNaN(x)) return 0n;
  if (x >= 2 ** 63) return int64Max;
  if (x <= -(2 ** 63)) return int64Min;
  return BigInt(Math.trunc(x));
}

/**
 * f32.convert_i64_s. `Math.fround(Number(x))` would round twice above 2^53. There the low 11 bits, far below float32's
 * last bit, are first replaced by one sticky bit, which makes the conversion to double exact.
 */
export function int64ToFloat(x: bigint): number {
  const magnitude = x < 0n ? -x : x;
  if (magnitude < 2n ** 53n) return Math.fround(Number(x));
  const kept = (magnitude >> 11n) | (magnitude % 2048n === 0n ? 0n : 1n);
  const rounded = Math.fround(Number(kept) * 2048);
  return x < 0n ? -rounded : rounded;
}

/** Functions that the emitted text calls, by name. */
export const jsLibrary = {
  ...Object.fromEntries(
    keysOf(dtypes)
      .filter(isPacked)
      .flatMap((dtype) => [
        [`decode_${dtype}`, packings[dtype].decode],
        [`encode_${dtype}`, packings[dtype].encode],
        [`round_${dtype}`, (x: number): number => roundPacked(dtype, x)],
      ]),
  ),
  bitsToFloat,
  erf,
  exp2,
  floatToBits,
  fmod,
  int64ToFloat,
  nearest,
  normalCdf,
  pow,
  mulHigh,
  truncateToInt,
  truncateToInt64,
} as const;

type Emit = (...operands: readonly string[]) => string;

const same: Emit = (x) => `${x}`;
const wrap64 = (text: string): string => `BigInt.asIntN(64, ${text})`;

/**
 * Math.imul, because the product of two i32 as a double could lose its low bits. Sums and quotients of i32 are exact in
 * double.
 */
const primitives: { readonly [P in Primitive]: { readonly [T in ScalarType]?: Emit } } = {
  neg: { f64: (x) => `-${x}`, f32: (x) => `-${x}`, i32: (x) => `(-${x} | 0)`, i64: (x) => wrap64(`-${x}`) },
  abs: {
    f64: (x) => `Math.abs(${x})`,
    f32: (x) => `Math.abs(${x})`,
    i32: (x) => `(Math.abs(${x}) | 0)`,
    i64: (x) => `(${x} < 0n ? ${wrap64(`-${x}`)} : ${x})`,
  },
  add: infix("+"),
  sub: infix("-"),
  mul: { ...infix("*"), i32: (x, y) => `Math.imul(${x}, ${y})` },
  div: infix("/"),
  max: extremum("max", ">"),
  min: extremum("min", "<"),
  sqrt: { f64: (x) => `Math.sqrt(${x})`, f32: (x) => `Math.fround(Math.sqrt(${x}))` },
  floor: rounding("Math.floor"),
  ceil: rounding("Math.ceil"),
  trunc: rounding("Math.trunc"),
  nearest: rounding("nearest"),
  rem: { i32: (x, y) => `((${x} % ${y}) | 0)`, i64: (x, y) => `(${x} % ${y})` },
  mulHigh: { i32: (x, y) => `mulHigh(${x}, ${y})` },
  and: bitwise("&"),
  or: bitwise("|"),
  xor: bitwise("^"),
  shl: { i32: (x, y) => `(${x} << ${y})`, i64: (x, y) => wrap64(`${x} << (${y} & 63n)`) },
  shr: { i32: (x, y) => `(${x} >> ${y})`, i64: (x, y) => `(${x} >> (${y} & 63n))` },
};

/** Whole numbers near a float32 are float32s. */
function rounding(name: string): { readonly [T in ScalarType]?: Emit } {
  const emit: Emit = (x) => `${name}(${x})`;
  return { f64: emit, f32: emit };
}

function bitwise(sign: string): { readonly [T in ScalarType]?: Emit } {
  const emit: Emit = (x, y) => `(${x} ${sign} ${y})`;
  return { i32: emit, i64: emit };
}

function infix(sign: string): { readonly [T in ScalarType]: Emit } {
  return {
    f64: (x, y) => `(${x} ${sign} ${y})`,
    // A double sum, product, quotient or root of float32 values, rounded again, is the float32 result: 53 >= 2 * 24 + 2
    // bits (Figueroa, "When is double rounding innocuous?", 1995).
    f32: (x, y) => `Math.fround(${x} ${sign} ${y})`,
    i32: (x, y) => `((${x} ${sign} ${y}) | 0)`,
    i64: (x, y) => wrap64(`${x} ${sign} ${y}`),
  };
}

function extremum(name: "max" | "min", wins: ">" | "<"): { readonly [T in ScalarType]: Emit } {
  const call: Emit = (x, y) => `Math.${name}(${x}, ${y})`;
  return { f64: call, f32: call, i32: call, i64: (x, y) => `(${x} ${wins} ${y} ? ${x} : ${y})` };
}

const conversions: { readonly [From in ScalarType]: { readonly [To in ScalarType]: Emit } } = {
  f64: {
    f64: same,
    f32: (x) => `Math.fround(${x})`,
    i32: (x) => `truncateToInt(${x})`,
    i64: (x) => `truncateToInt64(${x})`,
  },
  f32: { f64: same, f32: same, i32: (x) => `truncateToInt(${x})`, i64: (x) => `truncateToInt64(${x})` },
  i32: { f64: same, f32: (x) => `Math.fround(${x})`, i32: same, i64: (x) => `BigInt(${x})` },
  i64: {
    f64: (x) => `Number(${x})`,
    f32: (x) => `int64ToFloat(${x})`,
    i32: (x) => `Number(BigInt.asIntN(32, ${x}))`,
    i64: same,
  },
};

const comparisons: { readonly [C in Comparison]: string } = {
  eq: "===",
  ne: "!==",
  lt: "<",
  le: "<=",
  gt: ">",
  ge: ">=",
};

/**
 * The text of `expression`, usable as an operand of any operator. `operands[i]` is the text of operand i. It must be a
 * name, because it may be repeated.
 */
export function emitJs(expression: Expression, operands: readonly string[]): string {
  const emit = (inner: Expression): string => emitJs(inner, operands);
  switch (expression.kind) {
    case "operand":
      return at(operands, expression.index);
    case "constant":
      return jsConstant(expression.type === "f32" ? Math.fround(Number(expression.value)) : expression.value);
    case "apply": {
      const { primitive, type } = expression;
      const text = primitives[primitive][type];
      invariant(text !== undefined, "a primitive is used with a type that it has", { primitive, type });
      return `(${text(...expression.operands.map(emit))})`;
    }
    case "call": {
      invariant(
        definitionOf(expression) === undefined,
        "definitions of functions are split before (split-shared.ts)",
        expression.function,
      );
      const result = `${expression.function.js}(${expression.operands.map(emit).join(", ")})`;
      return expression.type === "f64" ? `(${result})` : `(Math.fround(${result}))`;
    }
    case "choose": {
      const condition = `${emit(expression.left)} ${comparisons[expression.comparison]} ${emit(expression.right)}`;
      return `(${condition} ? ${emit(expression.then)} : ${emit(expression.otherwise)})`;
    }
    case "convert":
      return conversions[expression.operand.type][expression.type](emit(expression.operand));
    case "round":
      return `round_${expression.to}(${emit(expression.operand)})`;
    case "bits":
      return `${expression.type === "i32" ? "floatToBits" : "bitsToFloat"}(${emit(expression.operand)})`;
    default:
      return unreachable(expression);
  }
}

/** A literal, in parentheses if it has a sign. */
export function jsConstant(value: Value): string {
  if (typeof value === "bigint") return value < 0n ? `(${value}n)` : `${value}n`;
  if (Object.is(value, -0)) return "(-0)";
  return value < 0 ? `(${value})` : `${value}`;
}

// Functions that generated JavaScript calls and that `Math` lacks or defines otherwise than C. All are in double.

/** The nearest whole number, halves to even. -0 and numbers that round to it keep their sign. */
export function nearest(x: number): number {
  // From 2^52 on, every double is whole. Below, adding 2^52 leaves no bits for a fraction.
  if (!(Math.abs(x) < 2 ** 52)) return x;
  const shift = x < 0 ? -(2 ** 52) : 2 ** 52;
  const rounded = x + shift - shift;
  return rounded === 0 ? 0 * x : rounded;
}

function fmod(x: number, y: number): number {
  return x % y;
}

function exp2(x: number): number {
  return 2 ** x;
}

/** As in C: 1 to any power is 1, also to NaN, and -1 to an infinite power is 1. */
function pow(x: number, y: number): number {
  if (x === 1 || (x === -1 && Math.abs(y) === Infinity)) return 1;
  return x ** y;
}

/**
 * The error function. Below 1 its Taylor series, the sum of (-x^2)^n / (n! (2 n + 1)) times 2 x / sqrt(pi), from the
 * innermost parenthesis; from 1 on 1 - 2 Phi(-x sqrt(2)).
 */
export function erf(x: number): number {
  const u = Math.abs(x);
  if (u >= 1) {
    const rest = 2 * normalCdf(-u * Math.SQRT2);
    return x < 0 ? rest - 1 : 1 - rest;
  }
  const square = x * x;
  let sum = 0;
  for (let n = 20; n >= 0; n--) sum = 1 / (2 * n + 1) - (square / (n + 1)) * sum;
  return (2 / Math.sqrt(Math.PI)) * x * sum;
}
