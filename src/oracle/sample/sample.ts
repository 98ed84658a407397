/**
 * Samples of tensors: some indices of each axis, and all elements at these. Large outputs are compared at a sample, and
 * of the tensors before them only the elements that the sample depends on are evaluated.
 */
import { emptyTensor, type Tensor, elementsOf } from "../../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Arithmetic } from "../tolerance.ts";
import { elementAt, makeValue, type OracleValue } from "../value.ts";

/** Of an axis: ascending indices; null for all. */
export type Indices = readonly number[] | null;

/** For each axis. */
export type Sample = readonly Indices[];

/** What a sample of an op's result depends on. */
export interface Sampled {
  readonly operands: readonly Sample[];
  /** The sample of the result, of samples of the operands; null if the op's definition gives it. */
  readonly evaluate: ((operands: readonly OracleValue[], arithmetic: Arithmetic) => OracleValue) | null;
}

export function wholeSample(shape: readonly number[]): Sample {
  return shape.map(() => null);
}

export function isWholeSample(sample: Sample): boolean {
  return sample.every((indices) => indices === null);
}

/** The shape of a tensor of which only the sample is there. */
export function sampledShape(sample: Sample, shape: readonly number[]): readonly number[] {
  return shape.map((extent, axis) => at(sample, axis)?.length ?? extent);
}

/** Null where all of the axis is in it. */
export function indicesOf(indices: readonly number[], extent: number): Indices {
  return indices.length === extent ? null : indices;
}

/** A sample that has both. */
export function union(a: Sample, b: Sample, shape: readonly number[]): Sample {
  return shape.map((extent, axis) => {
    const [first, second] = [at(a, axis), at(b, axis)];
    if (first === null || second === null) return null;
    return indicesOf(
      [...new Set([...first, ...second])].sort((i, k) => i - k),
      extent,
    );
  });
}

/** Where the sample `wanted` is in `have`, which has all of it; null if both are equal. */
function positions(have: Sample, wanted: Sample): readonly (readonly number[] | null)[] | null {
  const found = wanted.map((indices, axis) => {
    const own = at(have, axis);
    if (indices === null || own === null) {
      invariant(own === null, "a sample has what is taken from it", { axis });
      return indices;
    }
    const places = new Map(own.map((index, place) => [index, place]));
    return indicesOf(
      indices.map((index) => {
        const place = places.get(index);
        invariant(place !== undefined, "a sample has what is taken from it", { axis, index });
        return place;
      }),
      own.length,
    );
  });
  return isWholeSample(found) ? null : found;
}

/** The sample `wanted` of a value of which there is the sample `have`. */
export function narrow(value: OracleValue, have: Sample, wanted: Sample): OracleValue {
  const places = positions(have, wanted);
  if (places === null) return value;
  const shape = sampledShape(places, value.shape);
  return makeValue(value.dtype, shape, (index) =>
    elementAt(
      value,
      index.map((i, axis) => places[axis]?.[i] ?? i),
    ),
  );
}

export function sampleTensor(tensor: Tensor, sample: Sample): Tensor {
  if (isWholeSample(sample)) return tensor;
  const shape = sampledShape(sample, tensor.shape);
  const sampled = emptyTensor(tensor.dtype, shape);
  const [from, to] = [elementsOf(tensor.dtype, tensor.data), elementsOf(sampled.dtype, sampled.data)];
  for (let i = 0; i < to.length; i++) to.set(i, from.get(wholePosition(i, sample, tensor.shape)));
  return sampled;
}

/** The row-major position in a tensor of `shape` of the element at a row-major position in its sample. */
export function wholePosition(position: number, sample: Sample, shape: readonly number[]): number {
  let [rest, distance, whole] = [position, 1, 0];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const [indices, extent] = [at(sample, axis), at(shape, axis)];
    const count = indices?.length ?? extent;
    whole += distance * (indices?.[rest % count] ?? rest % count);
    rest = Math.floor(rest / count);
    distance *= extent;
  }
  return whole;
}
