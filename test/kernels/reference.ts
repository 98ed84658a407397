/**
 * The semantics of ops on elements, implemented a second time and differently from src/numerics: plain functions on
 * JavaScript values, by dtype. gelu is missing; test/numerics/normal-cdf.test.ts has its values.
 */
import { roundToBFloat16, roundToHalf } from "../../src/numerics/convert.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../../src/ir/ops/op.ts";
import type { Value } from "../../src/numerics/tensor/storage.ts";
import { at } from "../../src/support/invariant.ts";

export const arithmeticDTypes = ["double", "float", "half", "bfloat16", "int", "int64"] as const;
export const floatDTypes = ["double", "float", "half", "bfloat16"] as const;

/** A double brought to a float dtype: through float32, as every op's result. */
export function toDType(dtype: DType, x: number): number {
  switch (dtype) {
    case "double":
      return x;
    case "float":
      return Math.fround(x);
    case "half":
      return roundToHalf(Math.fround(x));
    case "bfloat16":
      return roundToBFloat16(Math.fround(x));
    case "int":
    case "int64":
    case "bool":
      throw new Error(`${dtype} is no float dtype`);
  }
}

function wrap(dtype: DType, x: bigint): Value {
  return dtype === "int64" ? BigInt.asIntN(64, x) : Number(BigInt.asIntN(32, x));
}

type ExactOp = "neg" | "abs" | "relu";

/** The functions of floats, in double; a row for each of src/ir/ops/functions/unary.ts. */
export const floatFunctions: { readonly [Op in Exclude<UnaryOpType, ExactOp | "gelu">]: (x: number) => number } = {
  exp: Math.exp,
  tanh: Math.tanh,
  rsqrt: (x) => 1 / Math.sqrt(x),
};

export function unary(op: Exclude<UnaryOpType, "gelu">, dtype: DType, x: Value): Value {
  if (dtypes[dtype].family === "float") {
    const number = Number(x);
    switch (op) {
      case "neg":
        return -number;
      case "abs":
        return number < 0 || Object.is(number, -0) ? -number : number;
      case "relu":
        return number > 0 || Number.isNaN(number) ? number : 0;
      default:
        return toDType(dtype, floatFunctions[op](number));
    }
  }
  const integer = BigInt(x);
  switch (op) {
    case "neg":
      return wrap(dtype, -integer);
    case "abs":
      return wrap(dtype, integer < 0n ? -integer : integer);
    case "relu":
      return wrap(dtype, integer < 0n ? 0n : integer);
    default:
      throw new Error(`${op} of an integer`);
  }
}

export function binary(op: BinaryOpType, dtype: DType, x: Value, y: Value): Value {
  if (dtypes[dtype].family === "float") {
    const [left, right] = [Number(x), Number(y)];
    // A double result of two float32s rounds to float32 as the exact one does.
    const results = { add: left + right, sub: left - right, mul: left * right, div: left / right };
    return toDType(dtype, results[op]);
  }
  const [left, right] = [BigInt(x), BigInt(y)];
  switch (op) {
    case "add":
      return wrap(dtype, left + right);
    case "sub":
      return wrap(dtype, left - right);
    case "mul":
      return wrap(dtype, left * right);
    case "div":
      return wrap(dtype, right === 0n ? 0n : left / right);
  }
}

/** In order, with one rounding to the dtype at the end. Not empty. */
export function reduce(op: ReductionOpType, dtype: DType, values: readonly Value[]): Value {
  const accumulator = dtype === "half" || dtype === "bfloat16" ? "float" : dtype;
  const rest = values.slice(1).reduce((sum, x) => fold(op, accumulator, sum, x), at(values, 0));
  return dtypes[dtype].family === "float" ? toDType(dtype, Number(rest)) : rest;
}

function fold(op: ReductionOpType, dtype: DType, sum: Value, x: Value): Value {
  switch (op) {
    case "sum":
      return binary("add", dtype, sum, x);
    case "prod":
      return binary("mul", dtype, sum, x);
    case "amax":
    case "amin":
      if (Number.isNaN(sum)) return sum;
      if (sum === 0 && x === 0) {
        const wanted = op === "amax" ? 0 : -0;
        return Object.is(sum, wanted) ? sum : x;
      }
      return Number.isNaN(x) || (op === "amax" ? x > sum : x < sum) ? x : sum;
  }
}

export function cast(from: DType, to: DType, x: Value): Value {
  if (to === "bool") return Number(x) === 0 ? 0 : 1;
  if (dtypes[to].family === "float") {
    if (typeof x === "number") return toDType(to, x);
    return to === "double" ? Number(x) : toDType(to, nearestFloat32(x));
  }
  if (dtypes[from].family !== "float") return wrap(to, BigInt(x));
  const number = Number(x);
  const bits = to === "int" ? 31n : 63n;
  if (Number.isNaN(number)) return wrap(to, 0n);
  if (number >= Number(2n ** bits)) return wrap(to, 2n ** bits - 1n);
  if (number <= -Number(2n ** bits)) return wrap(to, -(2n ** bits));
  return wrap(to, BigInt(Math.trunc(number)));
}

/** The nearest of the float32s around a bigint, by exact distances; on a tie the even one. */
function nearestFloat32(x: bigint): number {
  if (BigInt.asIntN(25, x) === x) return Number(x);
  const array = new Float32Array(1);
  const bits = new Int32Array(array.buffer);
  array[0] = Number(x);
  const middle = at(bits, 0);
  const distances = [middle - 1, middle, middle + 1].map((candidate) => {
    bits[0] = candidate;
    const value = at(array, 0);
    const distance = x - BigInt(value);
    return { value, even: candidate % 2 === 0, distance: distance < 0n ? -distance : distance };
  });
  const least = distances.map(({ distance }) => distance).reduce((a, b) => (a < b ? a : b));
  const nearest = distances.filter(({ distance }) => distance === least);
  return (nearest.find(({ even }) => even) ?? at(nearest, 0)).value;
}
