/**
 * Scalar expressions as CUDA C++, from the trees that the CPU's kernels are made of (ir/ops/functions). Kernels are
 * compiled with --fmad=false, so every operation rounds once, as the semantics require. CUDA's exp and normal
 * distribution are within the bounds of `--check`. Results rounded to 16 bits use a short form of the normal
 * distribution (prelude.ts), which is faster than memory.
 */
import type { Comparison, Expression, Primitive, ScalarType } from "../../../../numerics/scalar/expression.ts";
import type { Value } from "../../../../numerics/tensor/storage.ts";
import { at, invariant } from "../../../../support/invariant.ts";
import { unreachable } from "../../../../support/unreachable.ts";

type Emit = (...operands: readonly string[]) => string;
type ByType = { readonly [T in ScalarType]?: Emit };

export const scalarTypes: { readonly [T in ScalarType]: string } = {
  f64: "double",
  f32: "float",
  i32: "int",
  i64: "long long",
};

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

const primitives: { readonly [P in Primitive]: ByType } = {
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
  sqrt: { f64: (x) => `sqrt(${x})`, f32: (x) => `sqrtf(${x})` },
};

/** Short forms (prelude.ts) of library functions, for results that are rounded to 16 bits. */
const shortForms: ReadonlyMap<string, string> = new Map([["normcdf", "braid_normal_cdf"]]);

const comparisons: { readonly [C in Comparison]: string } = { eq: "==", ne: "!=" };

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
      const emit = primitives[primitive][type];
      invariant(emit !== undefined, "a primitive is used with a type that it has", { primitive, type });
      return `(${emit(...expression.operands.map(text))})`;
    }
    case "call": {
      const { c } = expression.function;
      const full = expression.type === "f64" ? c : `${c}f`;
      return `(${short ? (shortForms.get(c) ?? full) : full}(${text(expression.operand)}))`;
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
 * (gelu). The result may differ by one unit of a 16-bit dtype, or by some units of float.
 */
function inSingle(expression: Expression): Expression {
  if (readsDouble(expression)) return expression;
  return narrowed(expression);
}

function readsDouble(expression: Expression): boolean {
  switch (expression.kind) {
    case "operand":
      return expression.type === "f64";
    case "constant":
      return false;
    case "apply":
      return expression.operands.some(readsDouble);
    case "choose":
      return [expression.left, expression.right, expression.then, expression.otherwise].some(readsDouble);
    case "call":
      return readsDouble(expression.operand);
    case "convert":
      // Only double holds every integer exactly.
      return readsDouble(expression.operand) || (expression.type === "f64" && expression.operand.type !== "f32");
    case "round":
      return readsDouble(expression.operand);
    default:
      return unreachable(expression);
  }
}

function narrowed(expression: Expression): Expression {
  const type = expression.type === "f64" ? "f32" : expression.type;
  switch (expression.kind) {
    case "operand":
    case "constant":
      return { ...expression, type };
    case "apply":
      return { ...expression, type, operands: expression.operands.map(narrowed) };
    case "call":
      return { ...expression, type: "f32", operand: narrowed(expression.operand) };
    case "choose":
      return {
        ...expression,
        type,
        left: narrowed(expression.left),
        right: narrowed(expression.right),
        then: narrowed(expression.then),
        otherwise: narrowed(expression.otherwise),
      };
    case "convert":
      return { ...expression, type, operand: narrowed(expression.operand) };
    case "round":
      return { ...expression, operand: narrowed(expression.operand) };
    default:
      return unreachable(expression);
  }
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
