/**
 * Attention by its definition, row by row in double: scores, softmax, weighted sum. With es the largest error of a
 * row's scores, exponentials may be off by a factor of e^(2 es). Fused kernels round probabilities to a 16-bit dtype
 * once. A value of a masked key that is infinite or NaN makes its column unbounded: 0 times it is NaN in some back
 * ends.
 */
import type { SdpaOp } from "../../ir/ops/op.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Value } from "../value.ts";
import {
  emptyValue,
  finished,
  headsOf,
  isFinite,
  type MutableValue,
  type Rows,
  scoresOf,
  type Setting,
  settingOf,
} from "./rows.ts";

/** Of all queries, or of a sample of them: `whole` is the number of queries, and `sampled` has their positions. */
export function sdpa(
  op: SdpaOp,
  operands: readonly Value[],
  whole = at(at(operands, 0).shape, at(operands, 0).shape.length - 2),
  sampled: readonly number[] | null = null,
): readonly Value[] {
  const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const setting = settingOf(op, q, k, v, whole);
  const { dtype, front, d, e } = setting;
  const rows = at(q.shape, q.shape.length - 2);
  const seen = (row: number): number => setting.seen(sampled === null ? row : at(sampled, row));
  const [queries, keys, values] = [headsOf(q, front, d), headsOf(k, front, d), headsOf(v, front, e)];
  const [shape, statistics] = [
    [...front, rows, e],
    [...front, rows],
  ];
  const [output, logsumexp] = [emptyValue(shape), emptyValue(statistics)];
  for (const [head, own] of queries.entries()) {
    for (let row = 0; row < rows; row++) {
      const place = head * rows + row;
      const softmax = softmaxOf(setting, own, at(keys, head), row, seen(row));
      logsumexp.numbers[place] = softmax.logsumexp;
      logsumexp.bounds[place] = softmax.error;
      weigh(setting, softmax, at(values, head), output, place * e, seen(row));
    }
  }
  return [finished(dtype, shape, output), finished(accumulatorOf[dtype], statistics, logsumexp)];
}

interface Softmax {
  readonly probabilities: Float64Array;
  /** The largest relative error of a probability. */
  readonly relative: number;
  readonly logsumexp: number;
  /** Of logsumexp. */
  readonly error: number;
}

function softmaxOf(setting: Setting, q: Rows, k: Rows, row: number, seen: number): Softmax {
  const { scores, errors } = scoresOf(setting, q, k, row, seen);
  const own = scores.subarray(0, seen);
  if (seen === 0) return { probabilities: scores, relative: 0, logsumexp: -Infinity, error: 0 };
  const most = own.reduce((largest, score) => Math.max(largest, score), -Infinity);
  const probabilities = scores.map((score, j) => (j < seen ? Math.exp(score - most) : 0));
  const sum = probabilities.reduce((total, p) => total + p, 0);
  const es = errors.subarray(0, seen).reduce((largest, error) => Math.max(largest, error), 0);
  // The back end's largest score may be another one, and infinite or not.
  const isOpen = Number.isNaN(es) || es === Infinity || own.every((score) => score === -Infinity);
  const relative = isOpen ? Infinity : Math.expm1(2 * es) + setting.gamma(seen + 16) + setting.rounding;
  return {
    probabilities: probabilities.map((p) => p / sum),
    relative,
    logsumexp: most + Math.log(sum),
    error: isOpen ? Infinity : es + setting.gamma(seen + 16) + setting.gamma(4) * (Math.abs(most) + Math.log(sum)),
  };
}

/** The sum of the values' rows by their probabilities. */
function weigh(
  { keys, e, gamma, least }: Setting,
  { probabilities, relative }: Softmax,
  v: Rows,
  output: MutableValue,
  place: number,
  seen: number,
): void {
  const [sums, magnitudes] = [new Float64Array(e), new Float64Array(e)];
  const [spreads, sizes] = [new Float64Array(e), new Float64Array(e)];
  for (let j = 0; j < seen; j++) {
    const p = probabilities[j] ?? NaN;
    const start = v.start + j * e;
    for (let column = 0; column < e; column++) {
      const value = v.numbers[start + column] ?? NaN;
      const term = p * value;
      sums[column] = (sums[column] ?? NaN) + term;
      magnitudes[column] = (magnitudes[column] ?? NaN) + Math.abs(term);
      spreads[column] = (spreads[column] ?? NaN) + p * (1 + relative) * (v.bounds[start + column] ?? NaN);
      sizes[column] = (sizes[column] ?? NaN) + Math.abs(value);
    }
  }
  for (let j = seen; j < keys; j++) {
    if (isFinite(v, j)) continue;
    const start = v.start + j * e;
    for (let column = 0; column < e; column++) {
      const value = v.numbers[start + column] ?? NaN;
      if (Number.isFinite(value)) continue;
      magnitudes[column] = Infinity;
      sizes[column] = (sizes[column] ?? NaN) + Math.abs(value);
    }
  }
  for (let column = 0; column < e; column++) {
    const [size, magnitude] = [sizes[column] ?? NaN, magnitudes[column] ?? NaN];
    const underflow = least * (1 + keys + size);
    const bound = magnitude * (relative + gamma(keys + 2)) + (spreads[column] ?? NaN) + underflow;
    output.numbers[place + column] = sums[column] ?? NaN;
    output.bounds[place + column] = seen === 0 && size === 0 ? 0 : bound;
  }
}
