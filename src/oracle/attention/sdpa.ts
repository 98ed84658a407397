/**
 * Attention by its definition, row by row in double: scores, softmax, weighted sum. With es the largest error of a
 * row's scores, exponentials may be off by a factor of e^(2 es). Fused kernels round probabilities to a 16-bit dtype
 * once. A value of a masked key that is infinite or NaN makes its column unbounded: 0 times it is NaN in some back
 * ends.
 */
import type { SdpaOp } from "../../ir/ops/op.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { smallestRounding, type Value } from "../value.ts";
import {
  emptyValue,
  finished,
  headsOf,
  type MutableValue,
  type Rows,
  scoresOf,
  type Setting,
  settingOf,
} from "./rows.ts";

export function sdpa(op: SdpaOp, operands: readonly Value[]): readonly Value[] {
  const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const setting = settingOf(op, q, k, v);
  const { dtype, front, rows, d, e, seen } = setting;
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
  { dtype, keys, e, gamma }: Setting,
  { probabilities, relative }: Softmax,
  v: Rows,
  output: MutableValue,
  place: number,
  seen: number,
): void {
  for (let column = 0; column < e; column++) {
    let [sum, magnitude, spread, sizes] = [0, 0, 0, 0];
    for (let j = 0; j < keys; j++) {
      const x = v.start + j * e + column;
      const [value, bound] = [v.numbers[x] ?? NaN, v.bounds[x] ?? NaN];
      const p = probabilities[j] ?? NaN;
      if (j >= seen && Number.isFinite(value)) continue;
      sum += j < seen ? p * value : 0;
      magnitude += j < seen ? Math.abs(p * value) : Infinity;
      spread += j < seen ? p * (1 + relative) * bound : 0;
      sizes += Math.abs(value);
    }
    output.numbers[place + column] = sum;
    const underflow = 2 * smallestRounding[dtype] * (1 + keys + sizes);
    output.bounds[place + column] =
      seen === 0 && sizes === 0 ? 0 : magnitude * (relative + gamma(keys + 2)) + spread + underflow;
  }
}
