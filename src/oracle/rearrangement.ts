/** Ops that only move elements: each output element is an input element, with its bound. */
import { at } from "../support/invariant.ts";
import { type Bounded, elementAt, makeValue, type Value } from "./value.ts";

/** `flags[i]` is true if axis i of the output is new. */
export function broadcast(input: Value, flags: readonly boolean[], shape: readonly number[]): Value {
  return makeValue(input.dtype, shape, (index) =>
    elementAt(
      input,
      index.filter((_, axis) => flags[axis] !== true),
    ),
  );
}

/** An axis of extent 1 has the same element at every index. */
export function expand(input: Value, shape: readonly number[]): Value {
  return makeValue(input.dtype, shape, (index) => elementAt(input, index));
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

export function slice(
  input: Value,
  starts: readonly number[],
  steps: readonly number[],
  shape: readonly number[],
): Value {
  return makeValue(input.dtype, shape, (index) =>
    elementAt(
      input,
      index.map((position, axis) => at(starts, axis) + position * at(steps, axis)),
    ),
  );
}

export function cat(inputs: readonly Value[], axis: number, shape: readonly number[]): Value {
  const { dtype } = at(inputs, 0);
  return makeValue(dtype, shape, (index) => {
    let position = at(index, axis);
    let operand = 0;
    while (position >= at(at(inputs, operand).shape, axis)) position -= at(at(inputs, operand++).shape, axis);
    return elementAt(at(inputs, operand), index.with(axis, position));
  });
}

export function pad(
  input: Value,
  widths: readonly { readonly before: number }[],
  filled: Bounded,
  shape: readonly number[],
): Value {
  return makeValue(input.dtype, shape, (index) => {
    const inside = index.map((position, axis) => position - at(widths, axis).before);
    const isInside = inside.every((position, axis) => position >= 0 && position < at(input.shape, axis));
    return isInside ? elementAt(input, inside) : filled;
  });
}

export function select(input: Value, axis: number, position: number): Value {
  const shape = input.shape.filter((_, candidate) => candidate !== axis);
  return makeValue(input.dtype, shape, (index) => elementAt(input, index.toSpliced(axis, 0, position)));
}
