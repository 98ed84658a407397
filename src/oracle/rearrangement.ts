/** Ops that only move elements: each output element is an input element, with its bound. */
import { elementCount } from "../numerics/tensor/host-tensor.ts";
import { at } from "../support/invariant.ts";
import { type Bounded, elementAt, flatElement, makeValue, type OracleValue } from "./value.ts";

/** `flags[i]` is true if axis i of the output is new. */
export function broadcast(input: OracleValue, flags: readonly boolean[], shape: readonly number[]): OracleValue {
  const own = distances(input).values();
  const steps = flags.map((isNew) => (isNew ? 0 : (own.next().value ?? 0)));
  return stepped(input, shape, steps);
}

/** An axis of extent 1 has the same element at every index. */
export function expand(input: OracleValue, shape: readonly number[]): OracleValue {
  return stepped(input, shape, distances(input));
}

export function squeeze(input: OracleValue, axes: readonly number[]): OracleValue {
  const kept = <T>(each: readonly T[]): readonly T[] => each.filter((_, axis) => !axes.includes(axis));
  return stepped(input, kept(input.shape), kept(distances(input)));
}

/** Axis i of the output is axis `order[i]` of the input. */
export function permute(input: OracleValue, order: readonly number[]): OracleValue {
  const inOrder = (each: readonly number[]): readonly number[] => order.map((axis) => at(each, axis));
  return stepped(input, inOrder(input.shape), inOrder(distances(input)));
}

/** The distance of neighbours along each axis. An axis of extent 1 ignores the index. */
function distances({ shape }: OracleValue): readonly number[] {
  return shape.map((extent, axis) => (extent === 1 ? 0 : elementCount(shape.slice(axis + 1))));
}

/** The input's elements from `start` on, `steps[i]` apart along axis i of the output. */
function stepped(input: OracleValue, shape: readonly number[], steps: readonly number[], start = 0): OracleValue {
  return makeValue(input.dtype, shape, (index) => {
    let flat = start;
    for (let axis = 0; axis < steps.length; axis++) flat += at(index, axis) * at(steps, axis);
    return flatElement(input, flat);
  });
}

/** The same elements in row-major order. */
export function reshape(input: OracleValue, shape: readonly number[]): OracleValue {
  return { ...input, shape };
}

export function slice(
  input: OracleValue,
  starts: readonly number[],
  steps: readonly number[],
  shape: readonly number[],
): OracleValue {
  const own = distances(input);
  const start = own.reduce((sum, distance, axis) => sum + at(starts, axis) * distance, 0);
  return stepped(
    input,
    shape,
    own.map((distance, axis) => at(steps, axis) * distance),
    start,
  );
}

export function cat(inputs: readonly OracleValue[], axis: number, shape: readonly number[]): OracleValue {
  const { dtype } = at(inputs, 0);
  return makeValue(dtype, shape, (index) => {
    let position = at(index, axis);
    let operand = 0;
    while (position >= at(at(inputs, operand).shape, axis)) position -= at(at(inputs, operand++).shape, axis);
    return elementAt(at(inputs, operand), index.with(axis, position));
  });
}

export function pad(
  input: OracleValue,
  widths: readonly { readonly before: number }[],
  filled: Bounded,
  shape: readonly number[],
): OracleValue {
  return makeValue(input.dtype, shape, (index) => {
    const inside = index.map((position, axis) => position - at(widths, axis).before);
    const isInside = inside.every((position, axis) => position >= 0 && position < at(input.shape, axis));
    return isInside ? elementAt(input, inside) : filled;
  });
}

export function select(input: OracleValue, axis: number, position: number): OracleValue {
  const own = distances(input);
  return stepped(input, input.shape.toSpliced(axis, 1), own.toSpliced(axis, 1), position * at(own, axis));
}
