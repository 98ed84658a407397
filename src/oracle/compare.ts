/** Compares a result with the oracle's, element by element, within the oracle's bounds. */
import type { Tensor } from "../numerics/tensor/host-tensor.ts";
import { elementsOf } from "../numerics/tensor/storage.ts";
import { at, invariant } from "../support/invariant.ts";
import type { Element } from "./value.ts";

export interface Difference {
  /** The position in row-major order. */
  readonly index: number;
  readonly actual: Element;
  readonly expected: Element;
  /** |actual - expected|. Infinity if one of them is NaN or infinite and they differ. */
  readonly error: number;
  readonly bound: number;
}

export interface Comparison {
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
