/**
 * Scalar expressions: the effect of an op on single elements, as a small tree over WebAssembly-like types. Such a tree
 * defines every op once (ir/ops/functions). emit-js.ts emits JavaScript from a tree; other targets have other emitters.
 * A node may be used several times; split-shared.ts then computes it once.
 *
 * A node's value has the node's type: f32 nodes are rounded to float32, and i32 and i64 wrap. Packed dtypes are f32
 * values that a `round` node has rounded to the dtype. bool is the i32 0 or 1.
 */
import { byDType, type DType, dtypes, isPacked, type PackedDType } from "../dtype.ts";
import { invariant } from "../../support/invariant.ts";
import type { Value } from "../tensor/host-tensor.ts";

export type ScalarType = "f64" | "f32" | "i32" | "i64";

/** The type in which a dtype is computed. */
export const computeType: { readonly [D in DType]: ScalarType } = byDType(({ type }) => type);

/** The dtype that stores values of a compute type without conversion, which accumulators in memory use. */
export const accumulatorDType: { readonly [T in ScalarType]: DType } = {
  f64: "double",
  f32: "float",
  i32: "int",
  i64: "int64",
};

/**
 * Operations within one type. `div` and `rem` of integers truncate, and their divisor must not be 0. `max` and `min` of
 * floats are maximum and minimum of IEEE 754-2019, as in WebAssembly: NaN if either operand is NaN, and -0 is less than
 * 0.
 */
export type Primitive = ArithmeticPrimitive | FloatPrimitive | IntegerPrimitive;
type ArithmeticPrimitive = "neg" | "abs" | "add" | "sub" | "mul" | "div" | "max" | "min";
/** `nearest` rounds halves to even. */
type FloatPrimitive = "sqrt" | "floor" | "ceil" | "trunc" | "nearest";
/**
 * Shifts are modulo the number of bits; `shr` copies the sign. `mulHigh`, of i32, is the high word of the product of two
 * words without sign.
 */
type IntegerPrimitive = "rem" | "mulHigh" | "and" | "or" | "xor" | "shl" | "shr";
export type Comparison = "eq" | "ne" | "lt" | "le" | "gt" | "ge";

/**
 * A function of a mathematical library, of one or two operands. `js` is JavaScript's, an entry of Math or of
 * `jsLibrary` (emit-js.ts), computed in double and then rounded. Its bits depend on the engine, so only JavaScript can
 * reproduce them. `c` is the name in C and CUDA for double; the name for float has the suffix f.
 */
export interface LibraryFunction {
  readonly js: string;
  readonly c: string;
  /** On the CPU, the definition of calls in f32, in primitives (float-functions.ts). Others call `js`. */
  readonly inFloat?: Definition;
  /** Of calls in f64 (wide-functions.ts). */
  readonly inDouble?: Definition;
  /** If no library has the function: what it is made of, in double and in CUDA. `js` and `c` then only name it. */
  readonly composed?: Definition;
}

type Definition = (x: Expression) => Expression;

export type Expression =
  | { readonly kind: "operand"; readonly type: ScalarType; readonly index: number }
  | { readonly kind: "constant"; readonly type: ScalarType; readonly value: Value }
  | {
      readonly kind: "apply";
      readonly type: ScalarType;
      readonly primitive: Primitive;
      readonly operands: readonly Expression[];
    }
  | {
      readonly kind: "call";
      readonly type: "f64" | "f32";
      readonly function: LibraryFunction;
      readonly operands: readonly Expression[];
    }
  /** Evaluates only the selected branch. A comparison with NaN is false, except `ne`. */
  | {
      readonly kind: "choose";
      readonly type: ScalarType;
      readonly comparison: Comparison;
      readonly left: Expression;
      readonly right: Expression;
      readonly then: Expression;
      readonly otherwise: Expression;
    }
  /** Conversion to a float rounds to nearest even; from float to integer it is trunc_sat; from i64 to i32 it wraps. */
  | { readonly kind: "convert"; readonly type: ScalarType; readonly operand: Expression }
  | {
      readonly kind: "round";
      readonly type: "f32";
      readonly to: PackedDType;
      readonly operand: Expression;
    }
  /** The bits of the operand, which has the other type of 32 bits. */
  | { readonly kind: "bits"; readonly type: "f32" | "i32"; readonly operand: Expression };

export function operand(type: ScalarType, index: number): Expression {
  return { kind: "operand", type, index };
}

/** `value` is given as a number and becomes a bigint in i64. */
export function constant(type: ScalarType, value: number): Expression {
  return { kind: "constant", type, value: type === "i64" ? BigInt(value) : value };
}

/** All operands have one type, which is also the result's. */
export function apply(primitive: Primitive, first: Expression, ...rest: readonly Expression[]): Expression {
  return { kind: "apply", type: first.type, primitive, operands: [first, ...rest] };
}

/** The operands have one float type. */
export function call(library: LibraryFunction, first: Expression, ...rest: readonly Expression[]): Expression {
  const { type } = first;
  invariant(type === "f64" || type === "f32", "library functions take floats", { library, type });
  return { kind: "call", type, function: library, operands: [first, ...rest] };
}

/** The definition of a call on the CPU; undefined if `js` is called. */
export function definitionOf(call: Extract<Expression, { kind: "call" }>): Definition | undefined {
  const { inFloat, inDouble, composed } = call.function;
  return (call.type === "f32" ? inFloat : inDouble) ?? composed;
}

/** `left comparison right ? then : otherwise`. */
export function choose(
  [left, comparison, right]: readonly [Expression, Comparison, Expression],
  then: Expression,
  otherwise: Expression,
): Expression {
  return { kind: "choose", type: then.type, comparison, left, right, then, otherwise };
}

export function convert(type: ScalarType, value: Expression): Expression {
  return value.type === type ? value : { kind: "convert", type, operand: value };
}

export function bitsOf(value: Expression): Expression {
  invariant(value.type === "f32" || value.type === "i32", "the other type has 32 bits", { type: value.type });
  return { kind: "bits", type: value.type === "f32" ? "i32" : "f32", operand: value };
}

/** Rounds a value of the dtype's compute type to the dtype. */
export function roundTo(dtype: DType, value: Expression): Expression {
  return isPacked(dtype) && !isExact(value, 1 / dtypes[dtype].epsilon)
    ? { kind: "round", type: "f32", to: dtype, operand: value }
    : value;
}

const exactPrimitives: ReadonlySet<Primitive> = new Set([
  "neg",
  "abs",
  "max",
  "min",
  "floor",
  "ceil",
  "trunc",
  "nearest",
]);

/** Whether the result needs no rounding if the operands are values of a dtype that has all whole numbers up to `most`. */
function isExact(value: Expression, most: number): boolean {
  switch (value.kind) {
    case "operand":
      return true;
    case "constant":
      return Number.isInteger(value.value) && Math.abs(Number(value.value)) <= most;
    case "apply":
      return exactPrimitives.has(value.primitive) && value.operands.every((each) => isExact(each, most));
    case "choose":
      return isExact(value.then, most) && isExact(value.otherwise, most);
    case "call":
    case "convert":
    case "round":
    case "bits":
      return false;
  }
}
