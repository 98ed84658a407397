/**
 * What a sample of an op's result depends on: a sample of each operand. Most ops mean the same for samples as for whole
 * tensors; some are evaluated in another way on samples.
 */
import type { Op, SdpaOp } from "../../ir/ops/op.ts";
import { evaluateExtent, type Sizes } from "../../ir/sizes.ts";
import { positionOf } from "../../numerics/tensor/host-tensor.ts";
import { at, invariant, unreachable } from "../../support/invariant.ts";
import { sdpa } from "../attention/sdpa.ts";
import { elementOf } from "../definitions.ts";
import { pad } from "../rearrangement.ts";
import { makeValue, type OracleValue } from "../value.ts";
import {
  type Indices,
  indicesOf,
  isWholeSample,
  narrow,
  type Sample,
  type Sampled,
  sampledShape,
  wholeSample,
} from "./sample.ts";

/** The whole shapes of an op's operands and result. */
export interface OpShapes {
  readonly operands: readonly (readonly number[])[];
  readonly result: readonly number[];
}

/** Null if the op needs all of its operands, and gives all of its results. */
export function sampledOp(op: Op, sample: Sample, shapes: OpShapes, sizes: Sizes): Sampled | null {
  const plain = (...operands: readonly Sample[]): Sampled => ({ operands, evaluate: null });
  const [shape = []] = shapes.operands;
  switch (op.kind) {
    case "Full":
      return plain();
    case "Set":
    case "Unary":
    case "Cast":
      return plain(sample);
    case "Binary":
    case "Ternary":
    case "Expand":
      return plain(...shapes.operands.map((operand) => stretched(sample, operand)));
    case "Reduction":
    case "Squeeze": {
      const kept = sample.values();
      return plain(shape.map((_, axis) => (op.axes.includes(axis) ? null : (kept.next().value ?? null))));
    }
    case "Broadcast":
      return plain(sample.filter((_, axis) => op.flags[axis] !== true));
    case "Permute":
      return plain(shape.map((_, axis) => at(sample, op.order.indexOf(axis))));
    case "Reshape":
      return sampledReshape(sample, shape, shapes.result);
    case "Slice": {
      const operand = shape.map((extent, axis) => {
        const { start, step = 1 } = at(op.ranges, axis);
        const first = evaluateExtent(start, sizes);
        return indicesOf(
          listOf(at(sample, axis), at(shapes.result, axis)).map((i) => first + i * step),
          extent,
        );
      });
      return { operands: [operand], evaluate: (values) => at(values, 0) };
    }
    case "Select": {
      const position = indicesOf([evaluateExtent(op.index, sizes)], at(shape, op.axis));
      const evaluate = (values: readonly OracleValue[]): OracleValue => ({
        ...at(values, 0),
        shape: sampledShape(sample, shapes.result),
      });
      return { operands: [sample.toSpliced(op.axis, 0, position)], evaluate };
    }
    case "Cat": {
      const indices = at(sample, op.axis);
      if (indices === null) return plain(...shapes.operands.map(() => sample));
      let before = 0;
      const parts = shapes.operands.map((operand) => {
        const [start, extent] = [before, at(operand, op.axis)];
        before += extent;
        const own = indices.filter((i) => i >= start && i < before).map((i) => i - start);
        return sample.with(op.axis, indicesOf(own, extent));
      });
      return plain(...parts);
    }
    case "Pad":
      return sampledPad(op, sample, shapes);
    case "Matmul":
      return plain(...matmulOperands(sample, shapes));
    case "Linear": {
      const columns = Math.min(at(shapes.operands, 1).length - 1, 1);
      const own = sample.slice(sample.length - columns);
      const rows = [...sample.slice(0, sample.length - columns), null];
      if (op.to !== undefined) {
        // Rows of a sample are in no block of rows.
        const [, whole, , scale] = shapes.operands;
        if (whole?.length === scale?.length && whole?.at(-2) !== scale?.at(-2)) return null;
        const weight = [...sample.slice(0, Math.max(at(shapes.operands, 1).length - 2, 0)), ...own, null];
        const scales = [rows, weight].map((indices, i) => indices.slice(0, at(shapes.operands, 2 + i).length));
        return plain(rows, weight, ...scales);
      }
      return plain(...[rows, [...own, null], own].slice(0, op.inputs.length));
    }
    case "Iota":
    case "RandomBits":
    case "IndexSelect":
    case "Gather":
    case "ScatterAdd":
    case "GroupedMatmul":
    case "SdpaBackward":
      return null;
    case "Scan":
    case "Argsort":
      // All of the axis for some rows.
      return at(sample, op.axis) === null ? plain(sample) : null;
    case "Sdpa":
      return sampledAttention(op, sample, shapes);
    default:
      return unreachable(op);
  }
}

function listOf(indices: Indices, extent: number): readonly number[] {
  return indices ?? Array.from({ length: extent }, (_, i) => i);
}

/** Of an operand that is read again along its axes of extent 1, and lacks leading axes. */
function stretched(sample: Sample, operand: readonly number[]): Sample {
  const lacking = sample.length - operand.length;
  return operand.map((extent, axis) => (extent === 1 ? null : at(sample, axis + lacking)));
}

/** a [.., M, K] or [K], b [.., K, N] or [K]; batch axes broadcast. */
function matmulOperands(sample: Sample, { operands }: OpShapes): readonly Sample[] {
  const [a, b] = [at(operands, 0), at(operands, 1)];
  const [rowAxes, columnAxes] = [a.length > 1 ? 1 : 0, b.length > 1 ? 1 : 0];
  const batch = sample.slice(0, sample.length - rowAxes - columnAxes);
  const rows = sample.slice(batch.length, batch.length + rowAxes);
  const columns = sample.slice(batch.length + rowAxes);
  return [
    [...stretched(batch, a.slice(0, a.length - 1 - rowAxes)), ...rows, null],
    [...stretched(batch, b.slice(0, b.length - 1 - columnAxes)), null, ...columns],
  ];
}

/** Rows of queries; of all keys and values of their heads. A row has all of its columns. */
function sampledAttention(op: SdpaOp, sample: Sample, { operands }: OpShapes): Sampled {
  const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const further = operands.slice(3);
  const front = sample.slice(0, -2);
  const rows = at(sample, front.length);
  const heads = (operand: readonly number[]): Sample => [...stretched(front, operand.slice(0, -2)), null, null];
  const biasRows = (bias: readonly number[]): Sample => stretched([...front, rows, null], bias);
  return {
    operands: [
      [...front, rows, null],
      heads(k),
      heads(v),
      ...further.map((own) => (own.length === q.length ? biasRows(own) : stretched(front, own))),
    ],
    evaluate: (values, arithmetic) => {
      const [output] = sdpa(op, values, arithmetic, at(q, q.length - 2), rows);
      invariant(output !== undefined, "attention has an output", op);
      const columns = at(sample, front.length + 1);
      return columns === null ? output : narrow(output, [...sample.slice(0, -1), null], sample);
    },
  };
}

function sampledPad(op: Extract<Op, { readonly kind: "Pad" }>, sample: Sample, shapes: OpShapes): Sampled {
  const [shape = []] = shapes.operands;
  const wanted = shapes.result.map((extent, axis) => listOf(at(sample, axis), extent));
  const operand = shape.map((extent, axis) => {
    const { before } = at(op.widths, axis);
    const inside = at(wanted, axis)
      .map((i) => i - before)
      .filter((i) => i >= 0 && i < extent);
    return indicesOf(inside, extent);
  });
  const widths = op.widths.map(({ before }, axis) => ({ before: at(wanted, axis).filter((i) => i < before).length }));
  const evaluate = (values: readonly OracleValue[]): OracleValue => {
    const input = at(values, 0);
    const filled = { element: elementOf(input.dtype, op.value), bound: 0 };
    return pad(input, widths, filled, sampledShape(sample, shapes.result));
  };
  return { operands: [operand], evaluate };
}

// A sample of a reshape: by groups of axes of operand and result that have as many elements.

interface Group {
  readonly operand: readonly number[];
  readonly result: readonly number[];
}

function sampledReshape(sample: Sample, from: readonly number[], to: readonly number[]): Sampled {
  const found: (readonly number[] | null)[] = [...wholeSample(from)];
  for (const { operand, result } of groupsOf(from, to)) {
    if (isWholeSample(result.map((axis) => at(sample, axis)))) continue;
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

function reshapeSample(input: OracleValue, { operand, sample, from, to }: Reshaped): OracleValue {
  const shape = sampledShape(sample, to);
  if (isWholeSample(operand) && isWholeSample(sample)) return { ...input, shape };
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
