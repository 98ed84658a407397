/**
 * How memory stores elements: the typed array of each dtype, little-endian as on every platform with WebAssembly. half
 * and bfloat16 are 16-bit words, bool is one byte, 0 or 1. `Elements` reads and writes single elements as JavaScript
 * values, where speed does not matter.
 */
import { invariant } from "../../support/invariant.ts";
import { packings } from "../convert.ts";
import { type DType, dtypes, isPacked, type StorageOf } from "../dtype.ts";

/** An element outside memory: bigint for int64, 0 or 1 for bool, otherwise a number. */
export type Value = number | bigint;

/**
 * A view of `count` elements from `byteOffset`, a multiple of the element size. `count` defaults to all further
 * elements.
 */
export function storageView<D extends DType>(
  dtype: D,
  buffer: ArrayBufferLike,
  byteOffset = 0,
  count = Math.floor((buffer.byteLength - byteOffset) / dtypes[dtype].bytes),
): StorageOf[D] {
  return new dtypes[dtype].array(buffer, byteOffset, count);
}

export interface Elements {
  readonly dtype: DType;
  readonly length: number;
  readonly get: (index: number) => Value;
  /**
   * Takes a value of the dtype's compute type. It rounds the value to float32 and then to the dtype, as every op does.
   */
  readonly set: (index: number, value: Value) => void;
}

/** Element access over a typed array that holds `dtype`. */
export function elementsOf<D extends DType>(dtype: D, storage: StorageOf[D]): Elements {
  const array: StorageOf[DType] = storage;
  const { length } = array;
  if (array instanceof BigInt64Array) {
    const set = (index: number, value: Value): void => {
      invariant(typeof value === "bigint" && index < length, "a bigint inside the storage", { index });
      array[index] = value;
    };
    return { dtype, length, get: (index) => inside(array[index], index), set };
  }
  const packing = isPacked(dtype) ? packings[dtype] : null;
  const { family } = dtypes[dtype];
  const encode = (x: number): number => {
    if (packing !== null) return packing.encode(Math.fround(x));
    return family === "bool" && x !== 0 ? 1 : x;
  };
  return {
    dtype,
    length,
    get:
      packing === null
        ? (index) => inside(array[index], index)
        : (index) => packing.decode(inside(array[index], index)),
    set: (index, value) => {
      invariant(typeof value === "number" && index < length, "a number inside the storage", { index });
      array[index] = encode(value);
    },
  };
}

function inside<T extends Value>(value: T | undefined, index: number): T {
  invariant(value !== undefined, "an index inside the storage", { index });
  return value;
}

/** The index along each axis of the element at a row-major position. */
export function positionOf(index: number, shape: readonly number[]): readonly number[] {
  let rest = index;
  return shape
    .toReversed()
    .map((extent) => {
      const position = rest % extent;
      rest = Math.floor(rest / extent);
      return position;
    })
    .toReversed();
}

/** The number of elements of a shape; 1 without axes. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}
