/** The primitives of scalar expressions as CUDA C++. */
import type { Primitive, ScalarType } from "../../../../numerics/scalar/expression.ts";

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

export const primitiveTexts: { readonly [P in Primitive]: ByType } = {
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
