/** Emits scalar expressions as JavaScript text. i64 values are bigints, all others numbers. */
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import {
  bfloat16ToFloat,
  bitsToFloat,
  floatToBFloat16,
  floatToBits,
  floatToHalf,
  halfToFloat,
  roundToBFloat16,
  roundToHalf,
} from "../convert.ts";
import { type Comparison, definitionOf, type Expression, type Primitive, type ScalarType } from "./expression.ts";
import { erf, exp2, nearest, pow } from "./functions.ts";
import { int64ToFloat, mulHigh, truncateToInt, truncateToInt64 } from "./integers.ts";
import { normalCdf } from "./normal-cdf.ts";
import type { Value } from "../tensor/storage.ts";

/** Functions that the emitted text calls, by name. */
export const jsLibrary = {
  bfloat16ToFloat,
  bitsToFloat,
  erf,
  exp2,
  floatToBFloat16,
  floatToBits,
  floatToHalf,
  halfToFloat,
  int64ToFloat,
  nearest,
  normalCdf,
  pow,
  roundToBFloat16,
  mulHigh,
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
      return `${expression.to === "half" ? "roundToHalf" : "roundToBFloat16"}(${emit(expression.operand)})`;
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
