/** A sample of a reshape: by groups of axes of operand and result that have as many elements. */
import { positionOf } from "../../numerics/tensor/position.ts";
import { at } from "../../support/invariant.ts";
import { makeValue, type Value } from "../value.ts";
import { indicesOf, isWhole, type Sample, type Sampled, sampledShape, wholeSample } from "./sample.ts";

interface Group {
  readonly operand: readonly number[];
  readonly result: readonly number[];
}

export function sampledReshape(sample: Sample, from: readonly number[], to: readonly number[]): Sampled {
  const found: (readonly number[] | null)[] = [...wholeSample(from)];
  for (const { operand, result } of groupsOf(from, to)) {
    if (isWhole(result.map((axis) => at(sample, axis)))) continue;
    const needed = operand.map(() => new Set<number>());
    for (const flat of flatIndices(result, sample, to)) {
      const index = positionOf(
        flat,
        operand.map((axis) => at(from, axis)),
      );
      index.forEach((i, place) => at(needed, place).add(i));
    }
    operand.forEach((axis, place) => {
      const indices = [...at(needed, place)].sort((a, b) => a - b);
      found[axis] = indicesOf(indices, at(from, axis));
    });
  }
  const operand: Sample = found;
  return { operands: [operand], evaluate: (operands) => reshapeSample(at(operands, 0), { operand, sample, from, to }) };
}

interface Reshaped {
  readonly operand: Sample;
  readonly sample: Sample;
  readonly from: readonly number[];
  readonly to: readonly number[];
}

function reshapeSample(input: Value, { operand, sample, from, to }: Reshaped): Value {
  const shape = sampledShape(sample, to);
  if (isWhole(operand) && isWhole(sample)) return { ...input, shape };
  const places = operand.map((indices) => indices && new Map(indices.map((index, place) => [index, place])));
  return makeValue(input.dtype, shape, (index) => {
    const flat = index.reduce((sum, i, axis) => sum * at(to, axis) + (sample[axis]?.[i] ?? i), 0);
    const position = positionOf(flat, from).reduce(
      (sum, i, axis) => sum * at(input.shape, axis) + (places[axis]?.get(i) ?? i),
      0,
    );
    return { element: at(input.elements, position), bound: at(input.bounds, position) };
  });
}

/** The shortest runs of axes with as many elements; one group of all axes where a tensor is empty. */
function groupsOf(from: readonly number[], to: readonly number[]): readonly Group[] {
  if (from.includes(0)) return [{ operand: [...from.keys()], result: [...to.keys()] }];
  const groups: Group[] = [];
  let [i, k] = [0, 0];
  while (i < from.length || k < to.length) {
    const [operand, result]: [number[], number[]] = [[], []];
    let [left, right] = [1, 1];
    while (left !== right || (operand.length === 0 && i < from.length) || (result.length === 0 && k < to.length)) {
      if (i < from.length && (operand.length === 0 || left < right)) {
        left *= at(from, i);
        operand.push(i++);
      } else {
        right *= at(to, k);
        result.push(k++);
      }
    }
    groups.push({ operand, result });
  }
  return groups;
}

/** The row-major positions, along some axes, of a sample's elements. */
function flatIndices(axes: readonly number[], sample: Sample, shape: readonly number[]): readonly number[] {
  return axes.reduce<readonly number[]>(
    (found, axis) => {
      const extent = at(shape, axis);
      const indices = at(sample, axis) ?? Array.from({ length: extent }, (_, i) => i);
      return found.flatMap((flat) => indices.map((i) => flat * extent + i));
    },
    [0],
  );
}
