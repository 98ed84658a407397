/**
 * A tensor inside the oracle: row-major elements as plain numbers (bigint for int64, 0 and 1 for bool), and for each
 * the largest absolute error of a back end so far.
 */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { emptyTensor, type Tensor } from "../numerics/tensor/host-tensor.ts";
import { elementsOf, type Value as Element } from "../numerics/tensor/storage.ts";
import { at } from "../support/invariant.ts";
import { roundTo } from "./definitions.ts";

export type { Element };

export interface Value {
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
): Value {
  const count = shape.reduce((product, extent) => product * extent, 1);
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
export function elementAt(value: Value, index: readonly number[]): Bounded {
  let flat = 0;
  for (let axis = 0; axis < value.shape.length; axis++) {
    const extent = at(value.shape, axis);
    flat = flat * extent + (extent === 1 ? 0 : at(index, axis));
  }
  return flatElement(value, flat);
}

/** All elements as numbers. */
export function numbersOf({ elements }: Value): Float64Array {
  return elements instanceof Float64Array ? elements : Float64Array.from(elements, Number);
}

export function withoutBounds(value: Value): Value {
  return { ...value, bounds: new Float64Array(value.bounds.length) };
}

/** The element at a position in row-major order. */
export function flatElement({ elements, bounds }: Value, flat: number): Bounded {
  return { element: at(elements, flat), bound: at(bounds, flat) };
}

/** Half the spacing of the smallest numbers: the rounding error where a dtype underflows. */
export const smallestRounding: { readonly [K in DType]: number } = {
  double: Number.MIN_VALUE,
  float: 2 ** -150,
  half: 2 ** -25,
  bfloat16: 2 ** -134,
  int: 0,
  int64: 0,
  bool: 0,
};

/** Numbers from here on round to infinity. */
export const overflowThreshold: { readonly [K in DType]: number } = {
  double: Infinity,
  float: 2 ** 128 - 2 ** 103,
  half: 65520,
  bfloat16: 2 ** 128 - 2 ** 119,
  int: Infinity,
  int64: Infinity,
  bool: Infinity,
};

/** The smallest normal number. */
export const smallestNormal: { readonly [K in DType]: number } = {
  double: 2 ** -1022,
  float: 2 ** -126,
  half: 2 ** -14,
  bfloat16: 2 ** -126,
  int: 0,
  int64: 0,
  bool: 0,
};

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
  if (Math.abs(exact) - error >= overflowThreshold[dtype]) return { element, bound: 0 };
  const furthest = Math.abs(exact) + error;
  if (furthest >= overflowThreshold[dtype]) return { element, bound: Infinity };
  // The 16-bit dtypes round to float32 first.
  const rounding = dtypes[dtype].epsilon + (accumulatorOf[dtype] === dtype ? 0 : dtypes.float.epsilon);
  return { element, bound: error + rounding * (Math.abs(exact) + furthest) + 2 * smallestRounding[dtype] };
}

/** An input, which is exact. */
export function fromTensor({ dtype, shape, data }: Tensor): Value {
  const storage = elementsOf(dtype, data);
  const { elements, set } = emptyElements(dtype, storage.length);
  for (let i = 0; i < storage.length; i++) set(i, storage.get(i));
  return { dtype, shape, elements, bounds: new Float64Array(storage.length) };
}

export function toTensor({ dtype, shape, elements }: Value): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const storage = elementsOf(tensor.dtype, tensor.data);
  for (let i = 0; i < elements.length; i++) storage.set(i, at(elements, i));
  return tensor;
}
