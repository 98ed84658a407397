/**
 * Scalar expressions as CUDA C++: the same trees that the CPU's kernels are made of (ir/ops/functions). Kernels are compiled with
 * --fmad=false, so that every operation rounds by itself, as the semantics say. exp and the normal distribution are within the bounds of
 * `--check`: CUDA's, and where the result is rounded to 16 bits a short form of the latter (prelude.ts), which memory is slower than.
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

/** Signed overflow is undefined in C++: integers wrap as unsigned ones. */
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

/** Library functions that have a short form (prelude.ts), for results that are rounded to 16 bits at once. */
const shortForms: ReadonlyMap<string, string> = new Map([["normcdf", "braid_normal_cdf"]]);

const comparisons: { readonly [C in Comparison]: string } = { eq: "==", ne: "!=" };

/** In parentheses, safe as an operand of any operator. `operands[i]` is the text of operand i: a name. */
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
 * What is rounded to float or to 16 bits need not be computed in double: where double only comes from widened floats (gelu), the tree goes on in
 * float. The result may differ by one unit of a 16-bit dtype, by some units of float.
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
      // An integer is exact in double alone.
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

/** A literal, in parentheses where it has a sign. */
export function constantText(type: ScalarType, value: Value): string {
  switch (type) {
    case "f64":
    case "f32":
      return floatText(type, Number(value));
    case "i32":
      // -2^31 is no literal of C++.
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
