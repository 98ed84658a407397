/**
 * Scalar expressions as CUDA C++, from the trees that the CPU's kernels are made of (ir/ops/functions). Kernels are
 * compiled with --fmad=false, so every operation rounds once, as the semantics require. CUDA's exp and normal
 * distribution are within the bounds of `--check`. Results rounded to 16 bits use a short form of the normal
 * distribution (prelude.ts), which is faster than memory.
 */
import type { Comparison, Expression, Primitive, ScalarType } from "../../../../numerics/scalar/expression.ts";
import { mapSubexpressions, subexpressions } from "../../../../numerics/scalar/split-shared.ts";
import type { Value } from "../../../../numerics/tensor/host-tensor.ts";
import { at, invariant, unreachable } from "../../../../support/invariant.ts";

// The primitives of scalar expressions as CUDA C++.

type Emit = (...operands: readonly string[]) => string;
type ByType = { readonly [T in ScalarType]?: Emit };

/** Integers wrap as unsigned ones, because signed overflow is undefined in C++. */
function wrapping(sign: string): ByType {
  return {
    i32: (x, y) => `(int)((unsigned)${x} ${sign} (unsigned)${y})`,
    i64: (x, y) => `(long long)((unsigned long long)${x} ${sign} (unsigned long long)${y})`,
  };
}

function infix(sign: string): ByType {
  return { f64: (x, y) => `${x} ${sign} ${y}`, f32: (x, y) => `${x} ${sign} ${y}` };
}

function call(name: string): ByType {
  const emit: Emit = (...operands) => `braid_${name}(${operands.join(", ")})`;
  return { f64: emit, f32: emit, i32: emit, i64: emit };
}

const primitiveTexts: { readonly [P in Primitive]: ByType } = {
  neg: {
    f64: (x) => `-${x}`,
    f32: (x) => `-${x}`,
    i32: (x) => `(int)(0u - (unsigned)${x})`,
    i64: (x) => `(long long)(0ull - (unsigned long long)${x})`,
  },
  abs: { ...call("abs"), f64: (x) => `fabs(${x})`, f32: (x) => `fabsf(${x})` },
  add: { ...infix("+"), ...wrapping("+") },
  sub: { ...infix("-"), ...wrapping("-") },
  mul: { ...infix("*"), ...wrapping("*") },
  div: { ...call("div"), ...infix("/") },
  max: call("max"),
  min: call("min"),
  sqrt: library("sqrt"),
  floor: library("floor"),
  ceil: library("ceil"),
  trunc: library("trunc"),
  nearest: library("rint"),
  rem: call("rem"),
  mulHigh: { i32: (x, y) => `(int)((unsigned long long)(unsigned)${x} * (unsigned)${y} >> 32)` },
  and: bitwise("&"),
  or: bitwise("|"),
  xor: bitwise("^"),
  shl: {
    i32: (x, y) => `(int)((unsigned)${x} << (${y} & 31))`,
    i64: (x, y) => `(long long)((unsigned long long)${x} << (${y} & 63))`,
  },
  shr: { i32: (x, y) => `${x} >> (${y} & 31)`, i64: (x, y) => `${x} >> (${y} & 63)` },
};

function library(name: string): ByType {
  return { f64: (x) => `${name}(${x})`, f32: (x) => `${name}f(${x})` };
}

function bitwise(sign: string): ByType {
  const emit: Emit = (x, y) => `${x} ${sign} ${y}`;
  return { i32: emit, i64: emit };
}

export const scalarTypes: { readonly [T in ScalarType]: string } = {
  f64: "double",
  f32: "float",
  i32: "int",
  i64: "long long",
};

/** Short forms (prelude.ts) of library functions, for results that are rounded to 16 bits. */
const shortForms: ReadonlyMap<string, string> = new Map([["normcdf", "braid_normal_cdf"]]);

const comparisons: { readonly [C in Comparison]: string } = {
  eq: "==",
  ne: "!=",
  lt: "<",
  le: "<=",
  gt: ">",
  ge: ">=",
};

/** The text is in parentheses, so that it is safe as an operand. `operands[i]` is the name of operand i. */
export function expressionText(expression: Expression, operands: readonly string[]): string {
  return textOf(expression, operands, false);
}

/** `short`: whether the result is rounded to 16 bits. */
function textOf(expression: Expression, operands: readonly string[], short: boolean): string {
  const text = (inner: Expression): string => textOf(inner, operands, short);
  switch (expression.kind) {
    case "operand":
      return at(operands, expression.index);
    case "constant":
      return constantText(expression.type, expression.value);
    case "apply": {
      const { primitive, type } = expression;
      const emit = primitiveTexts[primitive][type];
      invariant(emit !== undefined, "a primitive is used with a type that it has", { primitive, type });
      return `(${emit(...expression.operands.map(text))})`;
    }
    case "call": {
      const { c, composed } = expression.function;
      if (composed !== undefined) return text(composed(at(expression.operands, 0)));
      const full = expression.type === "f64" ? c : `${c}f`;
      return `(${short ? (shortForms.get(c) ?? full) : full}(${expression.operands.map(text).join(", ")}))`;
    }
    case "choose": {
      const { left, right, comparison, then, otherwise } = expression;
      return `(${text(left)} ${comparisons[comparison]} ${text(right)} ? ${text(then)} : ${text(otherwise)})`;
    }
    case "convert": {
      const { operand, type } = expression;
      const inner = type === "f32" && operand.type === "f64" ? inSingle(operand) : operand;
      return conversionText(inner.type, type, text(inner));
    }
    case "round":
      return `braid_round_${expression.to}(${textOf(inSingle(expression.operand), operands, true)})`;
    case "bits":
      return `${expression.type === "i32" ? "__float_as_int" : "__int_as_float"}(${text(expression.operand)})`;
    default:
      return unreachable(expression);
  }
}

function conversionText(from: ScalarType, to: ScalarType, value: string): string {
  if (from === to) return value;
  const fromFloat = from === "f32" || from === "f64";
  if (fromFloat && (to === "i32" || to === "i64")) return `braid_to_${to}(${value})`;
  return `((${scalarTypes[to]})${value})`;
}

/**
 * Computes in float a result that is rounded to float or 16 bits, if doubles in it only come from widened floats
 * (rsqrt). The result may differ by one unit of a 16-bit dtype, or by some units of float.
 */
function inSingle(expression: Expression): Expression {
  if (readsDouble(expression)) return expression;
  return narrowed(expression);
}

function readsDouble(expression: Expression): boolean {
  if (expression.kind === "operand") return expression.type === "f64";
  // Only double holds every integer exactly.
  const widens = expression.kind === "convert" && expression.type === "f64" && expression.operand.type !== "f32";
  return widens || subexpressions(expression).some(readsDouble);
}

function narrowed(expression: Expression): Expression {
  const inner = mapSubexpressions(expression, narrowed);
  if (inner.kind === "call") return { ...inner, type: "f32" };
  if (inner.kind === "round" || inner.kind === "bits") return inner;
  return { ...inner, type: inner.type === "f64" ? "f32" : inner.type };
}

/** A literal; in parentheses if it is negative. */
export function constantText(type: ScalarType, value: Value): string {
  switch (type) {
    case "f64":
    case "f32":
      return floatText(type, Number(value));
    case "i32":
      // C++ has no literal for -2^31.
      return value === -(2 ** 31) ? "(-2147483647 - 1)" : signed(`${value}`);
    case "i64":
      return value === -(2n ** 63n) ? "(-9223372036854775807ll - 1ll)" : signed(`${value}ll`);
    default:
      return unreachable(type);
  }
}

function floatText(type: "f64" | "f32", value: number): string {
  const single = type === "f32";
  if (Number.isNaN(value)) return single ? "__int_as_float(0x7fffffff)" : "__longlong_as_double(0x7fffffffffffffffll)";
  if (!Number.isFinite(value)) {
    const infinity = single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000ll)";
    return value > 0 ? infinity : `(-${infinity})`;
  }
  if (Object.is(value, -0)) return single ? "(-0.0f)" : "(-0.0)";
  const digits = /[.e]/.test(`${value}`) ? `${value}` : `${value}.0`;
  return signed(single ? `${digits}f` : digits);
}

function signed(text: string): string {
  return text.startsWith("-") ? `(${text})` : text;
}
