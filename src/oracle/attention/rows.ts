/**
 * Rows of attention in double, and the errors of their scores.
 *
 * Infinite and NaN elements of what a row sees decide its results, as in the ops that attention consists of. Elements of
 * keys and values that it does not see may be multiplied by 0, which gives NaN, or be left out: such results have no
 * bound. The same holds for numbers that overflow between q k^T and the result.
 */
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import type { SdpaBackwardOp, SdpaOp } from "../../ir/ops/op.ts";
import { accumulatorOf, type DType, dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { accumulationError, type Arithmetic } from "../tolerance.ts";
import { oracleNumbers, overflowThreshold, smallestRounding, store, type OracleValue } from "../value.ts";

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
export function headsOf(value: OracleValue, front: readonly number[], columns: number): readonly Rows[] {
  const numbers = oracleNumbers(value);
  const own = value.shape.slice(0, front.length);
  const size = elementCount(value.shape.slice(front.length));
  const count = elementCount(front);
  const known = new Map<number, readonly boolean[]>();
  return Array.from({ length: count }, (_, head) => {
    let [rest, flat, step] = [head, 0, size];
    for (let axis = front.length - 1; axis >= 0; axis--) {
      const index = rest % at(front, axis);
      rest = Math.floor(rest / at(front, axis));
      if (at(own, axis) !== 1) flat += index * step;
      step *= at(own, axis);
    }
    const finite = known.get(flat) ?? finiteRows(numbers, flat, at(value.shape, front.length), columns);
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

/** The exponential of less than its negative is 0 in double. */
export const vanishing = 800;

/** Kernels on GPUs take floats below it for 0. */
const smallestNormalFloat = 2 ** -126;

/** Keys from the first one on, before `stop`. */
export interface Seen {
  readonly first: number;
  readonly stop: number;
}

export interface Setting {
  readonly dtype: DType;
  readonly front: readonly number[];
  readonly rows: number;
  readonly keys: number;
  readonly d: number;
  readonly e: number;
  readonly scale: number;
  /** The keys that a row sees, of as many as there are. */
  readonly seen: (row: number, length: number) => Seen;
  /** The relative error of `count` roundings. */
  readonly gamma: (count: number) => number;
  /** Of a probability that is rounded to the dtype. */
  readonly rounding: number;
  /** What a product or a probability may lose if it is too small. */
  readonly least: number;
  /** Results between, in the accumulator's dtype, are infinite from here on. */
  readonly overflow: number;
  readonly arithmetic: Arithmetic;
}

/** `rows`: the number of queries, of which q may be a sample. */
export function settingOf(
  { causal, window, scale }: SdpaOp | SdpaBackwardOp,
  [q, k, v]: readonly [OracleValue, OracleValue, OracleValue],
  arithmetic: Arithmetic,
  rows = at(q.shape, q.shape.length - 2),
): Setting {
  const { dtype, shape } = q;
  const d = at(shape, shape.length - 1);
  const [keys, e] = [at(k.shape, k.shape.length - 2), at(v.shape, v.shape.length - 1)];
  return {
    dtype,
    front: shape.slice(0, -2),
    rows,
    keys,
    d,
    e,
    scale: scale === null ? 1 / Math.sqrt(d) : Number(scale),
    seen: (row, length) => {
      const last = row + 1 + (causal === "bottomRight" ? length - rows : 0);
      const stop = Math.max(0, Math.min(keys, length, causal === null ? length : last));
      return { first: window === null ? 0 : Math.max(0, Math.min(stop, last - window)), stop };
    },
    gamma: (count) => accumulationError(count, count, dtype),
    rounding: accumulatorOf(dtype) === dtype ? 0 : 2 * dtypes[dtype].epsilon,
    least: 2 * smallestRounding[dtype] + (accumulatorOf(dtype) === "double" ? 0 : smallestNormalFloat),
    overflow: overflowThreshold[accumulatorOf(dtype)],
    arithmetic,
  };
}

/**
 * A number and its largest error: 0 where infinite and NaN operands decide the result in any order, Infinity where
 * numbers on the way may overflow, so that nothing is known.
 */
export interface Inexact {
  readonly value: number;
  readonly error: number;
}

/** A sum of products of two rows. */
export function dot(setting: Setting, a: Rows, row: number, b: Rows, column: number, roundings: number): Inexact {
  if (!isFinite(a, row) || !isFinite(b, column)) return specialDot(setting, a, row, b, column);
  // Not destructured: V8 would allocate the numbers.
  let value = 0;
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
    value += product;
    magnitude += Math.abs(product);
    spread += Math.abs(p) * w + Math.abs(q) * u + u * w;
  }
  return {
    value,
    error: magnitude + spread < setting.overflow ? setting.gamma(roundings) * magnitude + spread : Infinity,
  };
}

/** Of rows with infinite or NaN elements. */
function specialDot({ overflow }: Setting, a: Rows, row: number, b: Rows, column: number): Inexact {
  let [value, peak] = [0, 0];
  let [isOpen, hasNaN] = [false, false];
  for (let i = 0; i < a.columns; i++) {
    const [x, y] = [a.start + row * a.columns + i, b.start + column * b.columns + i];
    const [p, q] = [inexactAt(a, x), inexactAt(b, y)];
    value += p.value * q.value;
    hasNaN ||= isExactNaN(p) || isExactNaN(q);
    if (Number.isFinite(p.value) && Number.isFinite(q.value)) {
      peak += (Math.abs(p.value) + p.error) * (Math.abs(q.value) + q.error);
    } else isOpen ||= !isSignKnown(p) || !isSignKnown(q);
  }
  if (hasNaN) return { value: NaN, error: 0 };
  return { value, error: !isOpen && (Number.isNaN(value) || peak < overflow) ? 0 : Infinity };
}

export function inexactAt({ numbers, bounds }: MutableValue, place: number): Inexact {
  return { value: at(numbers, place), error: at(bounds, place) };
}

/** Whether the product with an infinite number is known. */
export function isSignKnown({ value, error }: Inexact): boolean {
  return error === 0 || Math.abs(value) > error;
}

/** The product of two numbers, rounded once. */
export function times({ gamma, least, overflow }: Setting, x: Inexact, y: Inexact): Inexact {
  const [p, q] = [Math.abs(x.value), Math.abs(y.value)];
  const moved = p * y.error + q * x.error + x.error * y.error;
  return bounded(x.value * y.value, moved + gamma(2) * (p * q + moved) + least, [x, y], overflow);
}

/** The difference of two numbers, rounded once. */
export function minus({ gamma, overflow }: Setting, x: Inexact, y: Inexact): Inexact {
  const size = Math.abs(x.value) + Math.abs(y.value);
  return bounded(x.value - y.value, x.error + y.error + gamma(2) * size, [x, y], overflow);
}

function bounded(value: number, error: number, operands: readonly Inexact[], overflow: number): Inexact {
  if (operands.some(isExactNaN)) return { value: NaN, error: 0 };
  if (!operands.every((operand) => Number.isFinite(operand.value))) {
    return { value, error: operands.every((operand) => operand.error === 0) ? 0 : Infinity };
  }
  return { value, error: Math.abs(value) + error < overflow ? error : Infinity };
}

export function isExactNaN({ value, error }: Inexact): boolean {
  return error === 0 && Number.isNaN(value);
}

/** What is added to the scores of a head, row by row and key by key; it is read again along axes of extent 1. */
export interface Bias extends Rows {
  readonly rowStep: 0 | 1;
  readonly keyStep: 0 | 1;
}

/** Of every head; null for each without one. */
export function biasesOf(bias: OracleValue | undefined, { front }: Setting): (head: number) => Bias | null {
  if (bias === undefined) return () => null;
  const [rows, columns] = [at(bias.shape, front.length), at(bias.shape, front.length + 1)];
  const heads = headsOf(bias, front, columns);
  return (head) => ({ ...at(heads, head), rowStep: rows === 1 ? 0 : 1, keyStep: columns === 1 ? 0 : 1 });
}

/** The scores of the keys that a row sees. */
export function scoresOf(
  setting: Setting,
  q: Rows,
  k: Rows,
  bias: Bias | null,
  row: number,
  seen: Seen,
): readonly Inexact[] {
  const factor = { value: setting.scale, error: 0 };
  // The sum, and the difference from the largest score.
  return Array.from({ length: seen.stop - seen.first }, (_, i) => {
    const score = times(setting, dot(setting, q, row, k, seen.first + i, setting.d + 3), factor);
    if (bias === null) return score;
    const place = bias.start + bias.rowStep * row * bias.columns + bias.keyStep * (seen.first + i);
    return biased(setting, score, inexactAt(bias, place));
  });
}

/** Back ends may leave a key out that a bias of -Infinity hides, whatever its score. */
function biased(setting: Setting, score: Inexact, bias: Inexact): Inexact {
  const isHidden = bias.value === -Infinity && bias.error === 0;
  if (!isHidden) return minus(setting, score, { value: -bias.value, error: bias.error });
  return { value: -Infinity, error: Number.isFinite(score.value) && score.error < Infinity ? 0 : Infinity };
}

export interface MutableValue {
  readonly numbers: Float64Array;
  readonly bounds: Float64Array;
}

export function emptyValue(shape: readonly number[]): MutableValue {
  const count = elementCount(shape);
  return { numbers: new Float64Array(count), bounds: new Float64Array(count) };
}

export function finished(dtype: DType, shape: readonly number[], { numbers, bounds }: MutableValue): OracleValue {
  numbers.forEach((exact, i) => {
    const { element, bound } = store(dtype, exact, bounds[i] ?? NaN);
    numbers[i] = Number(element);
    bounds[i] = bound;
  });
  return { dtype, shape, elements: numbers, bounds };
}
