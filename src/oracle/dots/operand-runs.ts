/** The runs of an operand of a contraction along K, one for each index of the output. */
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { advance, oracleNumbers, type OracleValue } from "../value.ts";

export interface OperandRuns {
  readonly value: OracleValue;
  /** Its elements. Typed arrays and plain indexing: the oracle spends nearly all of its time in loops over them. */
  readonly numbers: Float64Array;
  readonly count: number;
  /** The distance of two elements of a run. */
  readonly stride: number;
  /** The distance of the runs of two neighbours along each axis of the output; 0 if both have the same run. */
  readonly steps: readonly number[];
}

/** `outputAxis` gives the axis of the output for an axis of the operand other than `k`. A batch axis may be 1. */
export function operandRunsOf(
  value: OracleValue,
  k: number,
  output: readonly number[],
  outputAxis: (position: number) => number,
): OperandRuns {
  const steps = output.map(() => 0);
  let [stride, distance] = [1, 1];
  for (let position = value.shape.length - 1; position >= 0; position--) {
    const extent = at(value.shape, position);
    if (position === k) stride = distance;
    else if (extent > 1) steps[outputAxis(position)] = distance;
    distance *= extent;
  }
  return { value, numbers: oracleNumbers(value), count: at(value.shape, k), stride, steps };
}

/** Runs of which each is contiguous: floats of an operand with K as its last axis. */
export function contiguousRuns(runs: OperandRuns): OperandRuns {
  const { value, numbers, count, stride, steps } = runs;
  if (stride === 1) return runs;
  const [own, bounds] = [new Float64Array(numbers.length), new Float64Array(numbers.length)];
  for (let block = 0; block < numbers.length; block += count * stride) {
    for (let k = 0; k < count; k++) {
      for (let run = 0; run < stride; run++) {
        own[block + run * count + k] = numbers[block + k * stride + run] ?? NaN;
        bounds[block + run * count + k] = value.bounds[block + k * stride + run] ?? NaN;
      }
    }
  }
  // Axes after K had steps below its stride.
  const moved = steps.map((step) => (step < stride ? step * count : step));
  return { value: { ...value, elements: own, bounds }, numbers: own, count, stride: 1, steps: moved };
}

function startOf({ steps }: OperandRuns, index: readonly number[]): number {
  let start = 0;
  for (let axis = 0; axis < steps.length; axis++) start += at(steps, axis) * at(index, axis);
  return start;
}

/** Where the runs of each row are: the one of `a`, and the first one of `b`. Others follow at a distance of `step`. */
export interface DotRows {
  readonly x: Int32Array;
  readonly y: Int32Array;
  readonly step: number;
  readonly count: number;
}

/** Of the rows of a result, whose last axis is one of `b`. */
export function dotRows(a: OperandRuns, b: OperandRuns, shape: readonly number[]): DotRows {
  const axes = shape.with(-1, 1);
  const length = elementCount(axes);
  const [x, y] = [new Int32Array(length), new Int32Array(length)];
  const index = axes.map(() => 0);
  for (let row = 0; row < length; row++) {
    x[row] = startOf(a, index);
    y[row] = startOf(b, index);
    advance(index, axes);
  }
  return { x, y, step: b.steps[shape.length - 1] ?? 0, count: at(shape, shape.length - 1) };
}

// Sums of products of some rows of a result, in row-major order.

/** Rows that are computed together, so that what they read stays in the cache. */
export const dotTileRows = 64;

export interface Tile {
  readonly sums: Float64Array;
  /** Of the magnitudes of the products. NaN or Infinity if an operand is. */
  readonly magnitudes: Float64Array;
  /** The largest changes of the sums. */
  readonly spreads: Float64Array;
}
