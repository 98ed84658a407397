/**
 * Tensors as values on the host: what goes into a run and what comes out. Row-major elements in the typed array of the
 * dtype; half and bfloat16 as raw 16-bit words, bool as 0 and 1.
 */
import { unreachable } from "../support/unreachable.ts";
import { type DType, dtypes, isDType } from "./dtype.ts";

/** The typed array that holds each dtype. */
export interface StorageOf {
  readonly double: Float64Array;
  readonly float: Float32Array;
  readonly half: Uint16Array;
  readonly bfloat16: Uint16Array;
  readonly int: Int32Array;
  readonly int64: BigInt64Array;
  readonly bool: Uint8Array;
}

export interface TensorOf<D extends DType> {
  readonly dtype: D;
  readonly shape: readonly number[];
  /** One element per index, the last axis fastest. */
  readonly data: StorageOf[D];
}

export type Tensor = { [D in DType]: TensorOf<D> }[DType];

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** A tensor of zeros. */
export function emptyTensor(dtype: DType, shape: readonly number[]): Tensor {
  const count = elementCount(shape);
  switch (dtype) {
    case "double":
      return { dtype, shape, data: new Float64Array(count) };
    case "float":
      return { dtype, shape, data: new Float32Array(count) };
    case "half":
    case "bfloat16":
      return { dtype, shape, data: new Uint16Array(count) };
    case "int":
      return { dtype, shape, data: new Int32Array(count) };
    case "int64":
      return { dtype, shape, data: new BigInt64Array(count) };
    case "bool":
      return { dtype, shape, data: new Uint8Array(count) };
    default:
      return unreachable(dtype);
  }
}

/** The bytes that the tensor's elements lie in: writing them writes the tensor. */
export function tensorBytes({ data }: Tensor): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Whether a value is a tensor whose data has the dtype's width and as many elements as its shape says. */
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
