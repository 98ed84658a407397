/** Emits scalar expressions as JavaScript text. i64 values are bigints, all others numbers. */
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import {
  bfloat16ToFloat,
  floatToBFloat16,
  floatToHalf,
  halfToFloat,
  roundToBFloat16,
  roundToHalf,
} from "../convert.ts";
import type { Comparison, Expression, Primitive, ScalarType } from "./expression.ts";
import { normalCdf } from "./normal-cdf.ts";
import type { Value } from "../tensor/storage.ts";

/** Functions that the emitted text calls, by name. */
export const jsLibrary = {
  bfloat16ToFloat,
  floatToBFloat16,
  floatToHalf,
  halfToFloat,
  int64ToFloat,
  normalCdf,
  roundToBFloat16,
  roundToHalf,
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
};

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

const comparisons: { readonly [C in Comparison]: string } = { eq: "===", ne: "!==" };

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
      return jsConstant(expression.value);
    case "apply": {
      const { primitive, type } = expression;
      const text = primitives[primitive][type];
      invariant(text !== undefined, "a primitive is used with a type that it has", { primitive, type });
      return `(${text(...expression.operands.map(emit))})`;
    }
    case "call": {
      const result = `${expression.function.js}(${emit(expression.operand)})`;
      return expression.type === "f64" ? `(${result})` : `(Math.fround(${result}))`;
    }
    case "choose": {
      const condition = `${emit(expression.left)} ${comparisons[expression.comparison]} ${emit(expression.right)}`;
      return `(${condition} ? ${emit(expression.then)} : ${emit(expression.otherwise)})`;
    }
    case "convert":
      return conversions[expression.operand.type][expression.type](emit(expression.operand));
    case "round":
      return `${expression.to === "half" ? "roundToHalf" : "roundToBFloat16"}(${emit(expression.operand)})`;
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
