/** Rows of attention in double, and the errors of their scores. */
import type { SdpaBackwardOp, SdpaOp } from "../../ir/ops/op.ts";
import { accumulatorOf, type DType, dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { accumulationError } from "../tolerance.ts";
import { numbersOf, smallestRounding, store, type Value } from "../value.ts";

/** Rows of one head of an operand: `numbers[start + row * columns + column]`. */
export interface Rows {
  readonly numbers: Float64Array;
  readonly bounds: Float64Array;
  readonly columns: number;
  readonly start: number;
  /** By row: whether all of its numbers are finite. */
  readonly finite: readonly boolean[];
}

export function isFinite({ finite }: Rows, row: number): boolean {
  return at(finite, row);
}

/** The rows of every head of q's axes in front; a tensor of extent 1 on an axis is read again. */
export function headsOf(value: Value, front: readonly number[], columns: number): readonly Rows[] {
  const numbers = numbersOf(value);
  const own = value.shape.slice(0, front.length);
  const size = value.shape.slice(front.length).reduce((product, extent) => product * extent, 1);
  const count = front.reduce((product, extent) => product * extent, 1);
  const known = new Map<number, readonly boolean[]>();
  return Array.from({ length: count }, (_, head) => {
    let [rest, flat, step] = [head, 0, size];
    for (let axis = front.length - 1; axis >= 0; axis--) {
      const index = rest % at(front, axis);
      rest = Math.floor(rest / at(front, axis));
      if (at(own, axis) !== 1) flat += index * step;
      step *= at(own, axis);
    }
    const finite = known.get(flat) ?? finiteRows(numbers, flat, size / columns, columns);
    known.set(flat, finite);
    return { numbers, bounds: value.bounds, columns, start: flat, finite };
  });
}

function finiteRows(numbers: Float64Array, start: number, rows: number, columns: number): readonly boolean[] {
  return Array.from({ length: rows }, (_, row) => {
    for (let i = start + row * columns; i < start + (row + 1) * columns; i++) {
      if (!Number.isFinite(numbers[i])) return false;
    }
    return true;
  });
}

/** Kernels on GPUs take floats below it for 0. */
const smallestNormalFloat = 2 ** -126;

export interface Setting {
  readonly dtype: DType;
  readonly front: readonly number[];
  readonly rows: number;
  readonly keys: number;
  readonly d: number;
  readonly e: number;
  readonly scale: number;
  readonly seen: (row: number) => number;
  /** The relative error of `count` roundings. */
  readonly gamma: (count: number) => number;
  /** Of a probability that is rounded to the dtype. */
  readonly rounding: number;
  /** What a product or a probability may lose if it is too small. */
  readonly least: number;
}

/** `rows`: the number of queries, of which q may be a sample. */
export function settingOf(
  { causal, scale }: SdpaOp | SdpaBackwardOp,
  q: Value,
  k: Value,
  v: Value,
  rows = at(q.shape, q.shape.length - 2),
): Setting {
  const { dtype, shape } = q;
  const d = at(shape, shape.length - 1);
  const [keys, e] = [at(k.shape, k.shape.length - 2), at(v.shape, v.shape.length - 1)];
  const last = causal === "bottomRight" ? keys - rows : 0;
  return {
    dtype,
    front: shape.slice(0, -2),
    rows,
    keys,
    d,
    e,
    scale: scale === null ? 1 / Math.sqrt(d) : Number(scale),
    seen: (row) => (causal === null ? keys : Math.max(0, Math.min(keys, row + last + 1))),
    gamma: (count) => accumulationError(count, count, dtype),
    rounding: accumulatorOf[dtype] === dtype ? 0 : 2 * dtypes[dtype].epsilon,
    least: 2 * smallestRounding[dtype] + (accumulatorOf[dtype] === "double" ? 0 : smallestNormalFloat),
  };
}

/** A sum of products of two rows, and its largest error. */
export function dot(
  a: Rows,
  row: number,
  b: Rows,
  column: number,
  gamma: number,
): { readonly sum: number; readonly error: number } {
  // Not destructured: V8 would allocate the numbers.
  let sum = 0;
  let magnitude = 0;
  let spread = 0;
  const x = a.start + row * a.columns;
  const y = b.start + column * b.columns;
  for (let i = 0; i < a.columns; i++) {
    const p = a.numbers[x + i] ?? NaN;
    const q = b.numbers[y + i] ?? NaN;
    const u = a.bounds[x + i] ?? NaN;
    const w = b.bounds[y + i] ?? NaN;
    const product = p * q;
    sum += product;
    magnitude += Math.abs(product);
    spread += Math.abs(p) * w + Math.abs(q) * u + u * w;
  }
  return { sum, error: gamma * magnitude + spread };
}

/** The scores of a row, and the largest error of each. */
export function scoresOf(
  { keys, d, scale, gamma }: Setting,
  q: Rows,
  k: Rows,
  row: number,
  seen: number,
): { readonly scores: Float64Array; readonly errors: Float64Array } {
  const [scores, errors] = [new Float64Array(keys), new Float64Array(keys)];
  for (let j = 0; j < seen; j++) {
    // The sum, the scale and the difference from the largest score.
    const { sum, error } = dot(q, row, k, j, gamma(d + 4));
    scores[j] = scale * sum;
    errors[j] = Math.abs(scale) * error;
  }
  return { scores, errors };
}

export interface MutableValue {
  readonly numbers: Float64Array;
  readonly bounds: Float64Array;
}

export function emptyValue(shape: readonly number[]): MutableValue {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return { numbers: new Float64Array(count), bounds: new Float64Array(count) };
}

export function finished(dtype: DType, shape: readonly number[], { numbers, bounds }: MutableValue): Value {
  numbers.forEach((exact, i) => {
    const { element, bound } = store(dtype, exact, bounds[i] ?? NaN);
    numbers[i] = Number(element);
    bounds[i] = bound;
  });
  return { dtype, shape, elements: numbers, bounds };
}
