/** Strides in elements. */
import { at } from "../support/invariant.ts";

export function rowMajorStrides(shape: readonly number[]): readonly number[] {
  const strides: number[] = [];
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides.unshift(stride);
    stride *= at(shape, axis);
  }
  return strides;
}
