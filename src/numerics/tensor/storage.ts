/**
 * How memory stores elements: the typed array of each dtype, little-endian as on every platform with WebAssembly. half
 * and bfloat16 are 16-bit words, bool is one byte, 0 or 1. `Elements` reads and writes single elements as JavaScript
 * values, where speed does not matter.
 */
import { invariant } from "../../support/invariant.ts";
import { bfloat16ToFloat, floatToBFloat16, floatToHalf, halfToFloat } from "../convert.ts";
import { type DType, dtypes } from "../dtype.ts";

/** An element outside memory: bigint for int64, 0 or 1 for bool, otherwise a number. */
export type Value = number | bigint;

export interface StorageOf {
  readonly double: Float64Array;
  readonly float: Float32Array;
  readonly half: Uint16Array;
  readonly bfloat16: Uint16Array;
  readonly int: Int32Array;
  readonly int64: BigInt64Array;
  readonly bool: Uint8Array;
}

type ViewTable = {
  readonly [D in DType]: (buffer: ArrayBufferLike, byteOffset: number, count: number) => StorageOf[D];
};

const views: ViewTable = {
  double: (buffer, byteOffset, count) => new Float64Array(buffer, byteOffset, count),
  float: (buffer, byteOffset, count) => new Float32Array(buffer, byteOffset, count),
  half: (buffer, byteOffset, count) => new Uint16Array(buffer, byteOffset, count),
  bfloat16: (buffer, byteOffset, count) => new Uint16Array(buffer, byteOffset, count),
  int: (buffer, byteOffset, count) => new Int32Array(buffer, byteOffset, count),
  int64: (buffer, byteOffset, count) => new BigInt64Array(buffer, byteOffset, count),
  bool: (buffer, byteOffset, count) => new Uint8Array(buffer, byteOffset, count),
};

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
  return views[dtype](buffer, byteOffset, count);
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

type ElementsTable = { readonly [D in DType]: (storage: StorageOf[D]) => Elements };

const accessors: ElementsTable = {
  double: (storage) => numbers("double", storage, identity, identity),
  float: (storage) => numbers("float", storage, identity, identity),
  half: (storage) => numbers("half", storage, halfToFloat, (x) => floatToHalf(Math.fround(x))),
  bfloat16: (storage) => numbers("bfloat16", storage, bfloat16ToFloat, (x) => floatToBFloat16(Math.fround(x))),
  int: (storage) => numbers("int", storage, identity, identity),
  int64: (storage) => ({
    dtype: "int64",
    length: storage.length,
    get: (index) => inside(storage[index], index),
    set: (index, value) => {
      invariant(typeof value === "bigint" && index < storage.length, "a bigint inside the storage", { index });
      storage[index] = value;
    },
  }),
  bool: (storage) => numbers("bool", storage, identity, (x) => (x === 0 ? 0 : 1)),
};

/** Element access over a typed array that holds `dtype`. */
export function elementsOf<D extends DType>(dtype: D, storage: StorageOf[D]): Elements {
  return accessors[dtype](storage);
}

interface NumberArray {
  readonly length: number;
  [index: number]: number;
}

function numbers(
  dtype: DType,
  storage: NumberArray,
  decode: (stored: number) => number,
  encode: (x: number) => number,
): Elements {
  return {
    dtype,
    length: storage.length,
    get: (index) => decode(inside(storage[index], index)),
    set: (index, value) => {
      invariant(typeof value === "number" && index < storage.length, "a number inside the storage", { index });
      storage[index] = encode(value);
    },
  };
}

function identity(x: number): number {
  return x;
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
