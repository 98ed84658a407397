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
  readonly elements: readonly Element[];
  readonly bounds: Float64Array;
}

export interface Bounded {
  readonly element: Element;
  readonly bound: number;
}

/** A value of `shape`, each element made from its index. */
export function makeValue(
  dtype: DType,
  shape: readonly number[],
  element: (index: readonly number[]) => Bounded,
): Value {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const elements: Element[] = [];
  const bounds = new Float64Array(count);
  const index = shape.map(() => 0);
  for (let flat = 0; flat < count; flat++) {
    const made = element(index);
    elements.push(made.element);
    bounds[flat] = made.bound;
    advance(index, shape);
  }
  return { dtype, shape, elements, bounds };
}

/** The next index in row-major order. */
function advance(index: number[], shape: readonly number[]): void {
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const next = at(index, axis) + 1;
    index[axis] = next < at(shape, axis) ? next : 0;
    if (next < at(shape, axis)) return;
  }
}

/** The element at `index`. An axis of extent 1 ignores the index. */
export function elementAt(value: Value, index: readonly number[]): Bounded {
  let flat = 0;
  value.shape.forEach((extent, axis) => {
    flat = flat * extent + (extent === 1 ? 0 : at(index, axis));
  });
  return { element: at(value.elements, flat), bound: at(value.bounds, flat) };
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
  const elements = Array.from({ length: storage.length }, (_, i) => storage.get(i));
  return { dtype, shape, elements, bounds: new Float64Array(elements.length) };
}

export function toTensor({ dtype, shape, elements }: Value): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const storage = elementsOf(tensor.dtype, tensor.data);
  elements.forEach((element, i) => {
    storage.set(i, element);
  });
  return tensor;
}
