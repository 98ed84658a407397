/**
 * Tensors as values on the host: the inputs and outputs of a run. Elements are row-major in the typed array of the
 * dtype; half and bfloat16 are 16-bit words, bool is 0 or 1.
 */
import { requireOneOf } from "../../diagnostics/arguments.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { keysOf, invariant } from "../../support/invariant.ts";
import { type DType, dtypes, isDType, type StorageOf, isPacked } from "../dtype.ts";
import { packings } from "../convert.ts";

export interface TensorOf<D extends DType> {
  readonly dtype: D;
  readonly shape: readonly number[];
  /** One element per index, the last axis fastest. */
  readonly data: StorageOf[D];
}

/** A union over the dtypes `D` (all by default). Comparing `dtype` narrows `data` to the typed array of that dtype. */
export type Tensor<D extends DType = DType> = { [K in D]: TensorOf<K> }[D];

/** A tensor of zeros. */
export function emptyTensor<D extends DType>(dtype: D, shape: readonly number[]): Tensor<D> {
  return { dtype, shape, data: new dtypes[dtype].array(elementCount(shape)) };
}

/** The bytes of the tensor's elements. Writing them changes the tensor. */
export function tensorBytes({ data }: Tensor): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Whether a value is a tensor: its data has the dtype's width and as many elements as its shape. */
export function isTensor(value: unknown): value is Tensor {
  if (typeof value !== "object" || value === null) return false;
  if (!("dtype" in value && "shape" in value && "data" in value)) return false;
  const { dtype, shape, data } = value;
  if (!isDType(dtype) || !Array.isArray(shape) || !ArrayBuffer.isView(data)) return false;
  const extents: readonly unknown[] = shape;
  const sizes = extents.filter((extent) => typeof extent === "number");
  return (
    sizes.length === extents.length &&
    data.constructor === emptyTensor(dtype, [0]).data.constructor &&
    data.byteLength === elementCount(sizes) * dtypes[dtype].bytes
  );
}

function from(values: NestedValues): Tensor<"float">;
function from<D extends DType>(values: NestedValues, dtype: D): Tensor<D>;
function from(values: NestedValues, dtype: DType = "float"): Tensor {
  const place = { kind: "call", text: `Tensor.from(values, ${JSON.stringify(dtype)})` } as const;
  requireOneOf(keysOf(dtypes), dtype, "a dtype", place);
  const shape = shapeOfNested(values);
  const tensor = emptyTensor(dtype, shape);
  const elements = elementsOf(tensor.dtype, tensor.data);
  const flat = flattenNested(values, shape);
  flat.forEach((value, i) => {
    const element = toElement(value, dtype);
    if (element === null) {
      fail({
        code: "bad-argument",
        message: `a value does not fit the dtype ${dtype}`,
        place,
        found: String(value),
        expected: expectedValue(dtype),
        help: "convert the value, or choose another dtype",
      });
    }
    elements.set(i, element);
  });
  return tensor;
}

function zeros(shape: readonly number[]): Tensor<"float">;
function zeros<D extends DType>(shape: readonly number[], dtype: D): Tensor<D>;
function zeros(shape: readonly number[], dtype: DType = "float"): Tensor {
  const place = { kind: "call", text: `Tensor.zeros([${shape.join(", ")}], ${JSON.stringify(dtype)})` } as const;
  requireOneOf(keysOf(dtypes), dtype, "a dtype", place);
  const bad = shape.find((extent) => !Number.isSafeInteger(extent) || extent < 0);
  if (bad !== undefined) {
    fail({
      code: "bad-extent",
      message: "an extent is not a whole number of at least 0",
      place,
      found: String(bad),
      expected: "a whole number of at least 0",
      help: "choose whole numbers",
    });
  }
  return emptyTensor(dtype, shape);
}

function values(tensor: Tensor<"int64">): bigint[];
function values(tensor: Tensor<Exclude<DType, "int64">>): number[];
function values(tensor: Tensor): Value[];
function values({ dtype, data }: Tensor): Value[] {
  const elements = elementsOf(dtype, data);
  return Array.from({ length: elements.length }, (_, i) => elements.get(i));
}

function toArray(tensor: Tensor): NestedValues {
  const flat = values(tensor).map((value) => (tensor.dtype === "bool" ? value !== 0 : value));
  return nestValues(flat, tensor.shape);
}

export const Tensor = {
  /**
   * A tensor from nested arrays, of dtype "float" by default. Floats are rounded to the dtype. Integers must be whole
   * and in range. bool takes booleans, 0 and 1. Throws `shape-mismatch` for rows of different lengths, `bad-extent` for
   * empty rows and `bad-argument` for a value that does not fit the dtype.
   */
  from,
  /**
   * A tensor of zeros, of dtype "float" by default. Throws `bad-extent` for an extent below 0, and `bad-argument` for
   * an unknown dtype.
   */
  zeros,
  /** The elements in row-major order: bigints for int64, 0 and 1 for bool, otherwise numbers. */
  values,
  /** Nested arrays as `from` takes them, with booleans for bool. */
  toArray,
} as const;

function expectedValue(dtype: DType): string {
  const { family, bytes } = dtypes[dtype];
  if (family === "float") return "numbers";
  if (family === "bool") return "true, false, 1 or 0";
  return `${bytes === 8 ? "bigints or " : ""}whole numbers from -2^${8 * bytes - 1} to 2^${8 * bytes - 1} - 1`;
}

/** The value as an element of the dtype; null if it does not fit. */
function toElement(value: PlainValue, dtype: DType): Value | null {
  const { family, bytes } = dtypes[dtype];
  if (family === "float") return typeof value === "number" ? value : null;
  if (family === "bool") return value === true || value === 1 ? 1 : value === false || value === 0 ? 0 : null;
  if (bytes === 4) return typeof value === "number" && (value | 0) === value ? value : null;
  if (typeof value === "boolean" || (typeof value === "number" && !Number.isSafeInteger(value))) return null;
  const whole = BigInt(value);
  return BigInt.asIntN(64, whole) === whole ? whole : null;
}

// Nested arrays as users write tensors, one level per axis: `[[1, 2], [3, 4]]`. Converts them to a shape and row-major
// values, and back.

/** Numbers, nested once per axis: `[[1, 2], [3, 4]]`. A plain number is a scalar tensor. int64 uses bigints. */
export type NestedValues = number | bigint | boolean | readonly NestedValues[];

type PlainValue = number | bigint | boolean;

function isNested(values: NestedValues): values is readonly NestedValues[] {
  return Array.isArray(values);
}

/** The extents, from the first entry of each level. Throws `bad-extent`. */
function shapeOfNested(values: NestedValues): readonly number[] {
  if (!isNested(values)) return [];
  const [first] = values;
  if (first !== undefined) return [values.length, ...shapeOfNested(first)];
  return fail({
    code: "bad-extent",
    message: "a tensor has no elements along an axis",
    place: { kind: "call", text: "Tensor.from(values)" },
    found: "an empty array",
    expected: "at least one element per axis",
    help: "give every axis an extent of at least 1",
  });
}

/** The values in row-major order. Throws `shape-mismatch` if the nesting differs from `shape`. */
function flattenNested(values: NestedValues, shape: readonly number[], depth = 0): PlainValue[] {
  const extent = shape[depth];
  if (!isNested(values)) return extent === undefined ? [values] : ragged(shape);
  if (values.length !== extent) return ragged(shape);
  return values.flatMap((entry) => flattenNested(entry, shape, depth + 1));
}

function ragged(shape: readonly number[]): never {
  return fail({
    code: "shape-mismatch",
    message: "the rows of a tensor have different lengths",
    place: { kind: "call", text: "Tensor.from(values)" },
    found: "nested arrays of different lengths or depths",
    expected: `the shape [${shape.join(", ")}] in every row`,
    help: "give every row the same number of entries",
  });
}

/** Row-major values in nested arrays. */
function nestValues(flat: readonly PlainValue[], shape: readonly number[]): NestedValues {
  const [extent, ...inner] = shape;
  if (extent === undefined) return flat[0] ?? 0;
  const span = elementCount(inner);
  return Array.from({ length: extent }, (_, i) => nestValues(flat.slice(i * span, (i + 1) * span), inner));
}

/*
 * How memory stores elements: the typed array of each dtype, little-endian as on every platform with WebAssembly. half
 * and bfloat16 are 16-bit words, bool is one byte, 0 or 1. `Elements` reads and writes single elements as JavaScript
 * values, where speed does not matter.
 */

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
