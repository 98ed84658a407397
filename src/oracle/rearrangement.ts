/** Ops that only move elements: each output element is an input element, with its bound. */
import { at } from "../support/invariant.ts";
import { elementAt, makeValue, type Value } from "./value.ts";

/** `flags[i]` is true if axis i of the output is new. */
export function broadcast(input: Value, flags: readonly boolean[], shape: readonly number[]): Value {
  return makeValue(input.dtype, shape, (index) =>
    elementAt(
      input,
      index.filter((_, axis) => flags[axis] !== true),
    ),
  );
}

export function squeeze(input: Value, axes: readonly number[]): Value {
  const shape = input.shape.filter((_, axis) => !axes.includes(axis));
  return makeValue(input.dtype, shape, (index) => {
    const kept = index.values();
    return elementAt(
      input,
      input.shape.map((_, axis) => (axes.includes(axis) ? 0 : (kept.next().value ?? 0))),
    );
  });
}

/** Axis i of the output is axis `order[i]` of the input. */
export function permute(input: Value, order: readonly number[]): Value {
  const shape = order.map((axis) => at(input.shape, axis));
  return makeValue(input.dtype, shape, (index) =>
    elementAt(
      input,
      input.shape.map((_, axis) => at(index, order.indexOf(axis))),
    ),
  );
}

/** The same elements in row-major order. */
export function reshape(input: Value, shape: readonly number[]): Value {
  return { ...input, shape };
}

export function slice(input: Value, ranges: readonly { readonly start: number; readonly stop: number }[]): Value {
  const shape = ranges.map(({ start, stop }) => stop - start);
  return makeValue(input.dtype, shape, (index) =>
    elementAt(
      input,
      index.map((position, axis) => position + at(ranges, axis).start),
    ),
  );
}

export function select(input: Value, axis: number, position: number): Value {
  const shape = input.shape.filter((_, candidate) => candidate !== axis);
  return makeValue(input.dtype, shape, (index) => elementAt(input, index.toSpliced(axis, 0, position)));
}
