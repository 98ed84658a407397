/** Evaluates ops on elements that the file gives, by the expressions that define Braid's ops. */
import { bitsToFloat, floatToBits, roundToBFloat16, roundToHalf } from "../../numerics/convert.ts";
import { int64ToFloat, truncateToInt, truncateToInt64 } from "../../numerics/scalar/integers.ts";
import type { Expression, ScalarType } from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import type { Element } from "./value.ts";

/** The value of `expression`; null where a library's function gives it, whose bits depend on the machine. */
export function evaluate(expression: Expression, operands: readonly Element[]): Element | null {
  const { type } = expression;
  switch (expression.kind) {
    case "operand":
      return at(operands, expression.index);
    case "constant":
      return type === "f32" ? Math.fround(Number(expression.value)) : expression.value;
    case "apply": {
      const values = expression.operands.map((each) => evaluate(each, operands));
      const [x = null, y = x] = values;
      if (x === null || y === null) return null;
      if (typeof x === "bigint") return typeof y === "bigint" ? wide(expression.primitive, x, y) : null;
      if (typeof y === "bigint") return null;
      const value = narrow(expression.primitive, x, y, type);
      return value === null ? null : type === "i32" ? value | 0 : type === "f32" ? Math.fround(value) : value;
    }
    case "call":
      return null;
    case "choose": {
      const [left, right] = [expression.left, expression.right].map((each) => evaluate(each, operands));
      if (left === null || right === null || left === undefined || right === undefined) return null;
      return evaluate(holds(expression.comparison, left, right) ? expression.then : expression.otherwise, operands);
    }
    case "convert": {
      const value = evaluate(expression.operand, operands);
      return value === null ? null : converted(value, expression.operand.type, type);
    }
    case "round": {
      const value = evaluate(expression.operand, operands);
      if (value === null) return null;
      return expression.to === "half" ? roundToHalf(Number(value)) : roundToBFloat16(Number(value));
    }
    case "bits": {
      const value = evaluate(expression.operand, operands);
      if (value === null) return null;
      return type === "i32" ? floatToBits(Number(value)) : bitsToFloat(Number(value));
    }
    default:
      return unreachable(expression);
  }
}

type Primitive = Extract<Expression, { readonly kind: "apply" }>["primitive"];
type Comparison = Extract<Expression, { readonly kind: "choose" }>["comparison"];

function narrow(primitive: Primitive, x: number, y: number, type: ScalarType): number | null {
  switch (primitive) {
    case "neg":
      return -x;
    case "abs":
      return Math.abs(x);
    case "add":
      return x + y;
    case "sub":
      return x - y;
    case "mul":
      return type === "i32" ? Math.imul(x, y) : x * y;
    case "div":
      return x / y;
    case "max":
      return Math.max(x, y);
    case "min":
      return Math.min(x, y);
    case "sqrt":
      return Math.sqrt(x);
    case "floor":
      return Math.floor(x);
    case "ceil":
      return Math.ceil(x);
    case "trunc":
      return Math.trunc(x);
    case "rem":
      return x % y;
    case "and":
      return x & y;
    case "or":
      return x | y;
    case "xor":
      return x ^ y;
    case "shl":
      return x << y;
    case "shr":
      return x >> y;
    case "nearest":
    case "mulHigh":
      return null;
    default:
      return unreachable(primitive);
  }
}

/** Of 64-bit integers. A divisor is not 0: expressions choose before they divide. */
function wide(primitive: Primitive, x: bigint, y: bigint): bigint | null {
  const results: { readonly [P in Primitive]?: () => bigint } = {
    neg: () => -x,
    abs: () => (x < 0n ? -x : x),
    add: () => x + y,
    sub: () => x - y,
    mul: () => x * y,
    div: () => x / y,
    max: () => (x > y ? x : y),
    min: () => (x < y ? x : y),
    rem: () => x % y,
    and: () => x & y,
    or: () => x | y,
    xor: () => x ^ y,
    shl: () => x << (y & 63n),
    shr: () => x >> (y & 63n),
  };
  const value = results[primitive]?.();
  return value === undefined ? null : BigInt.asIntN(64, value);
}

function holds(comparison: Comparison, left: Element, right: Element): boolean {
  switch (comparison) {
    case "eq":
      return left === right;
    case "ne":
      return left !== right;
    case "lt":
      return left < right;
    case "le":
      return left <= right;
    case "gt":
      return left > right;
    case "ge":
      return left >= right;
    default:
      return unreachable(comparison);
  }
}

function converted(value: Element, from: ScalarType, to: ScalarType): Element {
  if (typeof value === "bigint") {
    if (to === "i64") return value;
    if (to === "i32") return Number(BigInt.asIntN(32, value));
    return to === "f32" ? int64ToFloat(value) : Number(value);
  }
  const isFloat = from === "f32" || from === "f64";
  if (to === "i64") return isFloat ? truncateToInt64(value) : BigInt(value);
  if (to === "i32") return isFloat ? truncateToInt(value) : value;
  return to === "f32" ? Math.fround(value) : value;
}
