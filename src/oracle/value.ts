/**
 * A tensor inside the oracle: row-major elements as plain numbers (bigint for int64, 0 and 1 for bool), and for each
 * the largest absolute error of a back end so far.
 */
import type { FusionData } from "../ir/fusion-data.ts";
import type { Op } from "../ir/ops/op.ts";
import { accumulatorOf, byDType, type DType, dtypes } from "../numerics/dtype.ts";
import {
  emptyTensor,
  type Tensor,
  elementCount,
  type Value as Element,
  elementsOf,
} from "../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";
import { roundTo } from "./definitions.ts";

export type { Element };

export interface OracleValue {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** A typed array: generic arrays of millions of elements take several times the memory and time. */
  readonly elements: ArrayLike<Element>;
  readonly bounds: Float64Array;
}

export interface Bounded {
  readonly element: Element;
  readonly bound: number;
}

/** A value of `shape`, each element made from its index; `flat` is its position in row-major order. */
export function makeValue(
  dtype: DType,
  shape: readonly number[],
  element: (index: readonly number[], flat: number) => Bounded,
): OracleValue {
  const count = elementCount(shape);
  const { elements, set } = emptyElements(dtype, count);
  const bounds = new Float64Array(count);
  const index = shape.map(() => 0);
  for (let flat = 0; flat < count; flat++) {
    const made = element(index, flat);
    set(flat, made.element);
    bounds[flat] = made.bound;
    advance(index, shape);
  }
  return { dtype, shape, elements, bounds };
}

interface MutableElements {
  readonly elements: ArrayLike<Element>;
  readonly set: (flat: number, element: Element) => void;
}

function emptyElements(dtype: DType, count: number): MutableElements {
  if (dtype === "int64") {
    const elements = new BigInt64Array(count);
    const set = (flat: number, element: Element): void => {
      elements[flat] = BigInt(element);
    };
    return { elements, set };
  }
  const elements = new Float64Array(count);
  const set = (flat: number, element: Element): void => {
    elements[flat] = Number(element);
  };
  return { elements, set };
}

/** The next index in row-major order. */
export function advance(index: number[], shape: readonly number[]): void {
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const next = at(index, axis) + 1;
    index[axis] = next < at(shape, axis) ? next : 0;
    if (next < at(shape, axis)) return;
  }
}

/** The element at `index`. An axis of extent 1 ignores the index. */
export function elementAt(value: OracleValue, index: readonly number[]): Bounded {
  let flat = 0;
  for (let axis = 0; axis < value.shape.length; axis++) {
    const extent = at(value.shape, axis);
    flat = flat * extent + (extent === 1 ? 0 : at(index, axis));
  }
  return flatElement(value, flat);
}

export function oracleNumbers({ elements }: OracleValue): Float64Array {
  return elements instanceof Float64Array ? elements : Float64Array.from(elements, Number);
}

export function withoutBounds(value: OracleValue): OracleValue {
  return { ...value, bounds: new Float64Array(value.bounds.length) };
}

/** The element at a position in row-major order. */
export function flatElement({ elements, bounds }: OracleValue, flat: number): Bounded {
  return { element: at(elements, flat), bound: at(bounds, flat) };
}

/** Half the spacing of the smallest numbers: the rounding error where a dtype underflows. */
export const smallestRounding: { readonly [D in DType]: number } = byDType(({ family, epsilon, lowest }) =>
  family === "float" ? Math.max(epsilon * 2 ** lowest, Number.MIN_VALUE) : 0,
);

/** Numbers above this round to infinity, or to NaN in a format without infinities. */
export const overflowThreshold: { readonly [D in DType]: number } = byDType(({ family, epsilon, most }) =>
  family === "float" ? Number(most) + epsilon * 2 ** Math.floor(Math.log2(Number(most))) : Infinity,
);

/** The smallest normal number. */
export const smallestNormal: { readonly [D in DType]: number } = byDType(({ family, lowest }) =>
  family === "float" ? 2 ** lowest : 0,
);

/**
 * Stores a float result. `exact` is computed in double; a back end's value may differ by `error` before it rounds to
 * the dtype. Both sides round, so an inexact result costs two roundings. An exact result rounds equally on both sides.
 */
export function store(dtype: DType, exact: number, error: number): Bounded {
  const element = roundTo(dtype, exact);
  if (error === 0) return { element, bound: 0 };
  if (Number.isNaN(error) || error === Infinity) return { element, bound: Infinity };
  // Infinity and NaN from the operands are exact.
  if (!Number.isFinite(exact)) return { element, bound: 0 };
  if (Math.abs(exact) - error > overflowThreshold[dtype]) return { element, bound: 0 };
  const furthest = Math.abs(exact) + error;
  if (furthest >= overflowThreshold[dtype]) return { element, bound: Infinity };
  // The 16-bit dtypes round to float32 first.
  const rounding = dtypes[dtype].epsilon + (accumulatorOf(dtype) === dtype ? 0 : dtypes.float.epsilon);
  return { element, bound: error + rounding * (Math.abs(exact) + furthest) + 2 * smallestRounding[dtype] };
}

/** An input, which is exact. */
export function fromTensor({ dtype, shape, data }: Tensor): OracleValue {
  const storage = elementsOf(dtype, data);
  const { elements, set } = emptyElements(dtype, storage.length);
  for (let i = 0; i < storage.length; i++) set(i, storage.get(i));
  return { dtype, shape, elements, bounds: new Float64Array(storage.length) };
}

export function toTensor({ dtype, shape, elements }: OracleValue): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const storage = elementsOf(tensor.dtype, tensor.data);
  for (let i = 0; i < elements.length; i++) storage.set(i, at(elements, i));
  return tensor;
}

// Compares a result with the oracle's, element by element, within the oracle's bounds.

export interface Difference {
  /** The position in row-major order. */
  readonly index: number;
  readonly actual: Element;
  readonly expected: Element;
  /** |actual - expected|. Infinity if one of them is NaN or infinite and they differ. */
  readonly error: number;
  readonly bound: number;
}

interface Comparison {
  /** The largest absolute error. */
  readonly maxError: number;
  /** The largest ratio of error to bound. Above 1 the result is wrong. Infinity for an error with a bound of 0. */
  readonly maxRatio: number;
  /** The first element whose error exceeds its bound. */
  readonly firstBad: Difference | null;
  /** The number of elements without a bound. They were not compared. */
  readonly unbounded: number;
}

/** The tensors have equal dtype and shape. NaN equals NaN, and 0 equals -0. */
export function compare(actual: Tensor, expected: Tensor, bounds: Float64Array): Comparison {
  invariant(actual.dtype === expected.dtype, "compared tensors have one dtype", [actual.dtype, expected.dtype]);
  invariant(actual.data.length === expected.data.length, "compared tensors have one shape", [
    actual.shape,
    expected.shape,
  ]);
  const left = elementsOf(actual.dtype, actual.data);
  const right = elementsOf(expected.dtype, expected.data);
  let maxError = 0;
  let maxRatio = 0;
  let firstBad: Difference | null = null;
  let unbounded = 0;
  for (let index = 0; index < right.length; index++) {
    const bound = at(bounds, index);
    if (bound === Infinity) {
      unbounded++;
      continue;
    }
    const [got, want] = [left.get(index), right.get(index)];
    const error = errorOf(got, want);
    maxError = Math.max(maxError, error);
    maxRatio = Math.max(maxRatio, error === 0 ? 0 : error / bound);
    if (error > bound) firstBad ??= { index, actual: got, expected: want, error, bound };
  }
  return { maxError, maxRatio, firstBad, unbounded };
}

/** Whether zeros in place of the expected result would pass. A comparison with it then says little. */
export function doZerosPass({ dtype, data }: Tensor, bounds: Float64Array): boolean {
  const elements = elementsOf(dtype, data);
  return bounds.every((bound, i) => bound === Infinity || Math.abs(Number(elements.get(i))) <= bound);
}

function errorOf(actual: Element, expected: Element): number {
  if (typeof actual === "bigint" && typeof expected === "bigint") {
    return Number(actual > expected ? actual - expected : expected - actual);
  }
  const [a, b] = [Number(actual), Number(expected)];
  if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return 0;
  const error = Math.abs(a - b);
  return Number.isNaN(error) ? Infinity : error;
}

// Compares a result as a whole where the bounds of its elements say little. Worst-case bounds through softmax and norms
// grow until even zeros would pass. The exact result then comes from the same Fusion in double, and the measure is the
// oracle's own result, which has one rounding per op in the program's dtypes: a correct back end is about as far from
// the exact result, since its errors are as many and of the same size.

export interface NormComparison {
  /** The Euclidean norm of the errors, relative to that of the exact result. */
  readonly error: number;
  /** The largest that is accepted. */
  readonly limit: number;
  /** Whether zeros in place of the result would be accepted. */
  readonly zerosPass: boolean;
}

/**
 * How many times the oracle's error is accepted. Back ends accumulate 16-bit floats in float, so that only partial sums
 * of devices round more often than the oracle's. A float accumulates in float, with a rounding per addition.
 */
const accepted: { readonly [D in DType]: number } = byDType(({ family, packed }) =>
  family !== "float" ? 0 : packed ? 4 : 16,
);

/**
 * Whether most elements of a float result have no bound, or one above a tenth of the root mean square of them all, or
 * zeros would pass. Not of a result that is all zeros.
 */
export function areBoundsWide(tensor: Tensor, bounds: Float64Array): boolean {
  if (dtypes[tensor.dtype].family !== "float") return false;
  const elements = elementsOf(tensor.dtype, tensor.data);
  let squares = 0;
  for (let i = 0; i < elements.length; i++) squares += finite(Number(elements.get(i))) ** 2;
  if (squares === 0) return false;
  const largest = 0.1 * Math.sqrt(squares / elements.length);
  const wide = bounds.reduce((count, bound) => count + (bound > largest ? 1 : 0), 0);
  return wide > elements.length / 2 || doZerosPass(tensor, bounds);
}

function finite(x: number): number {
  return Number.isFinite(x) ? x : 0;
}

/** The Fusion with double for all floats. */
export function inDouble(fusion: FusionData): FusionData {
  const tensors = fusion.tensors.map((tensor) => ({ ...tensor, dtype: widened(tensor.dtype) }));
  const ops = fusion.ops.map((op): Op => {
    if (op.kind === "Cast") return { ...op, to: widened(op.to) };
    return op.kind === "Linear" && op.to !== undefined ? { ...op, to: "double" } : op;
  });
  return { ...fusion, tensors, ops };
}

/** The tensor with double for its float dtype. */
export function toDouble(tensor: Tensor): Tensor {
  const wide = emptyTensor(widened(tensor.dtype), tensor.shape);
  const [from, to] = [elementsOf(tensor.dtype, tensor.data), elementsOf(wide.dtype, wide.data)];
  for (let i = 0; i < from.length; i++) to.set(i, from.get(i));
  return wide;
}

function widened(dtype: DType): DType {
  return dtypes[dtype].family === "float" ? "double" : dtype;
}

/** Over the elements that are finite in both references. Null if there are none, or their squares overflow. */
export function compareNorms(actual: Tensor, oracle: Tensor, exact: Tensor): NormComparison | null {
  const elements = (tensor: Tensor): ((i: number) => number) => {
    const stored = elementsOf(tensor.dtype, tensor.data);
    return (i) => Number(stored.get(i));
  };
  const [own, rounded, wanted] = [elements(actual), elements(oracle), elements(exact)];
  let [size, error, rounding, count] = [0, 0, 0, 0];
  for (let i = 0; i < actual.data.length; i++) {
    const [x, y, z] = [own(i), rounded(i), wanted(i)];
    if (!Number.isFinite(y) || !Number.isFinite(z)) continue;
    size += z ** 2;
    error += (x - z) ** 2;
    rounding += (y - z) ** 2;
    count += 1;
  }
  if (count === 0 || !Number.isFinite(size) || !Number.isFinite(rounding)) return null;
  const unit = size === 0 ? 1 : Math.sqrt(size);
  const relative = Math.sqrt(error) / unit;
  const limit = (accepted[actual.dtype] * Math.sqrt(rounding)) / unit;
  return {
    error: Number.isNaN(relative) ? Infinity : relative,
    limit,
    zerosPass: Math.sqrt(size) / unit <= limit,
  };
}
