/**
 * The results of kernels, bit for bit: the oracle's definitions (src/oracle/definitions.ts), which share nothing with
 * src/numerics/scalar, and sums in the order of src/numerics/sum-order.ts, implemented a second time.
 */
import type { DType } from "../../src/numerics/dtype.ts";
import type { ReductionOpType, UnaryOpType } from "../../src/ir/ops/op.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { castOf, combinationOf, unaryDefinitions } from "../../src/oracle/definitions.ts";
import { at, keysOf } from "../../src/support/invariant.ts";

export {
  binaryOf as binary,
  castOf as cast,
  numberOf,
  roundTo as toDType,
  unaryOf as unary,
} from "../../src/oracle/definitions.ts";

export const arithmeticDTypes = ["double", "float", "half", "bfloat16", "int", "int64"] as const;

export const floatDTypes = ["double", "float", "half", "bfloat16"] as const;

/** Functions whose two statements, the oracle's and that of kernels, differ in their last bits. */
export const inexactFunctions: readonly UnaryOpType[] = ["gelu", "geluTanh", "erf", "normalCdf", "sigmoid", "silu"];

/** Functions that kernels define for float32 (src/numerics/scalar/float-functions.ts); in double they are exact. */
const floatDefinitions: readonly UnaryOpType[] = ["exp", "log", "tanh"];

export function isInexact(op: UnaryOpType, dtype: DType): boolean {
  return inexactFunctions.includes(op) || (floatDefinitions.includes(op) && dtype !== "double");
}

/** Functions of floats alone with the same bits in both statements, at least in double. */
export const floatFunctions: readonly UnaryOpType[] = keysOf(unaryDefinitions).filter(
  (op) => unaryDefinitions[op].integer === null && !inexactFunctions.includes(op),
);

/** In blocks, with one rounding to the dtype at the end. Not empty. */
export function reduce(op: ReductionOpType, dtype: DType, values: readonly Value[]): Value {
  const accumulator = accumulatorOf(dtype);
  const total = inBlocks(values, 64, (x, y) => combinationOf(op, accumulator, x, y));
  return castOf(accumulator, dtype, total);
}

/**
 * The sum of products in blocks of `first`, each from +0, then the bias, and one rounding. `held` is what the sums
 * start from.
 */
export function dot(
  dtype: DType,
  products: readonly (readonly [Value, Value])[],
  bias: Value | null,
  held: Value | null = null,
): Value {
  const accumulator = accumulatorOf(dtype);
  const add = (x: Value, y: Value): Value => combinationOf("sum", accumulator, x, y);
  const zero = dtype === "int64" ? 0n : 0;
  const first = dtype === "double" || dtype === "int64" ? 128 : 256;
  const blocks = chunked(products, first).map((block) =>
    block.map(([x, y]) => combinationOf("prod", accumulator, x, y)).reduce(add, zero),
  );
  // Sums of blocks, 64 at a time, until the last ones are left.
  let sums: readonly Value[] = blocks;
  while (sums.length > 64) sums = chunked(sums, 64).map((block) => block.reduce(add));
  const total = [...(held === null ? [] : [held]), ...sums].reduce(add);
  return castOf(accumulator, dtype, bias === null ? total : add(total, bias));
}

function accumulatorOf(dtype: DType): DType {
  return dtype === "half" || dtype === "bfloat16" ? "float" : dtype;
}

function inBlocks(values: readonly Value[], block: number, add: (x: Value, y: Value) => Value): Value {
  const sums = chunked(values, block).map((each) => each.reduce(add));
  return sums.length === 1 ? at(sums, 0) : inBlocks(sums, block, add);
}

function chunked<T>(values: readonly T[], length: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(values.length / length) }, (_, i) =>
    values.slice(i * length, (i + 1) * length),
  );
}
