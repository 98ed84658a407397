/**
 * Attention by its definition, row by row in double: scores, softmax, weighted sum. With es the largest error of a
 * row's scores, exponentials may be off by a factor of e^(2 es). Fused kernels round probabilities to a 16-bit dtype
 * once.
 */
import type { SdpaOp } from "../../ir/ops/op.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Arithmetic } from "../tolerance.ts";
import type { OracleValue } from "../value.ts";
import {
  biasesOf,
  emptyValue,
  finished,
  headsOf,
  isExactNaN,
  isFinite,
  type Inexact,
  type MutableValue,
  type Rows,
  scoresOf,
  type Seen,
  type Setting,
  settingOf,
  vanishing,
} from "./rows.ts";

/** Of all queries, or of a sample of them: `whole` is the number of queries, and `sampled` has their positions. */
export function sdpa(
  op: SdpaOp,
  operands: readonly OracleValue[],
  arithmetic: Arithmetic,
  whole = at(at(operands, 0).shape, at(operands, 0).shape.length - 2),
  sampled: readonly number[] | null = null,
): readonly OracleValue[] {
  const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const setting = settingOf(op, [q, k, v], arithmetic, whole);
  const { dtype, front, d, e } = setting;
  const rows = at(q.shape, q.shape.length - 2);
  // Numbers of keys have the axes in front alone.
  const [bias, given] = operands[3]?.shape.length === q.shape.length ? [operands[3]] : [undefined, operands[3]];
  const lengths = given === undefined ? null : headsOf({ ...given, shape: [...given.shape, 1, 1] }, front, 1);
  const biases = biasesOf(bias, setting);
  const seen = (head: number, row: number): Seen => {
    const own = lengths === null ? null : at(lengths, head);
    return setting.seen(
      sampled === null ? row : at(sampled, row),
      own === null ? setting.keys : at(own.numbers, own.start),
    );
  };
  const [queries, keys, values] = [headsOf(q, front, d), headsOf(k, front, d), headsOf(v, front, e)];
  const [shape, statistics] = [
    [...front, rows, e],
    [...front, rows],
  ];
  const [output, logsumexp] = [emptyValue(shape), emptyValue(statistics)];
  for (const [head, own] of queries.entries()) {
    for (let row = 0; row < rows; row++) {
      const place = head * rows + row;
      const visible = seen(head, row);
      const softmax = softmaxOf(setting, scoresOf(setting, own, at(keys, head), biases(head), row, visible));
      logsumexp.numbers[place] = softmax.logsumexp.value;
      logsumexp.bounds[place] = softmax.logsumexp.error;
      weigh(setting, softmax, visible, at(values, head), output, place * e);
    }
  }
  return [finished(dtype, shape, output), finished(accumulatorOf(dtype), statistics, logsumexp)];
}

interface Softmax {
  /** One per key that the row sees. */
  readonly probabilities: Float64Array;
  /** The largest relative error of a probability. */
  readonly relative: number;
  /** Of the exponentials, by which kernels divide at the end. */
  readonly sum: number;
  readonly logsumexp: Inexact;
}

/** Of a row that sees no key, or only scores of -Infinity: as if it saw none. */
const none: Softmax = {
  probabilities: new Float64Array(),
  relative: 0,
  sum: 1,
  logsumexp: { value: -Infinity, error: 0 },
};

function softmaxOf({ gamma, rounding, arithmetic }: Setting, scores: readonly Inexact[]): Softmax {
  const values = Float64Array.from(scores, ({ value }) => value);
  const most = values.reduce((largest, score) => Math.max(largest, score), -Infinity);
  const isOpen = arithmetic.skipsZeros === true && !values.every(Number.isFinite);
  // What lies that far below the largest score is 0, however large its error.
  const counts = scores.filter(({ value, error }) => !(value + error < most - vanishing));
  const es = counts.reduce((largest, { error }) => Math.max(largest, error), isOpen ? Infinity : 0);
  if (most === -Infinity && es === 0) return none;
  const powers = values.map((score) => Math.exp(score - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  const [probabilities, logsumexp] = [powers.map((power) => power / sum), most + Math.log(sum)];
  // A score that is NaN or infinite makes all of its row NaN.
  const isNaNRow = !isOpen && scores.some(({ value, error }) => error === 0 && !(value < Infinity));
  if (isNaNRow) return { probabilities, relative: 0, sum, logsumexp: { value: NaN, error: 0 } };
  const roundings = gamma(scores.length + 16);
  const relative = Math.expm1(2 * es) + roundings + rounding;
  const error = es + roundings + gamma(4) * (Math.abs(most) + Math.log(sum));
  return { probabilities, relative, sum, logsumexp: { value: logsumexp, error } };
}

/** The sum of the values' rows by their probabilities. */
function weigh(
  setting: Setting,
  softmax: Softmax,
  { first }: Seen,
  v: Rows,
  output: MutableValue,
  place: number,
): void {
  const { keys, e, gamma, least, overflow, arithmetic } = setting;
  const { probabilities, relative, sum } = softmax;
  const seen = probabilities.length;
  if (isExactNaN(softmax.logsumexp)) {
    output.numbers.fill(NaN, place, place + e);
    return;
  }
  const [sums, magnitudes] = [new Float64Array(e), new Float64Array(e)];
  const [spreads, sizes] = [new Float64Array(e), new Float64Array(e)];
  for (let j = 0; j < seen; j++) {
    const p = probabilities[j] ?? NaN;
    const start = v.start + (first + j) * e;
    // It may become 0, or be left out.
    const mayVanish = p * (1 - relative) <= least && (p > 0 || arithmetic.skipsZeros === true);
    for (let column = 0; column < e; column++) {
      const value = v.numbers[start + column] ?? NaN;
      const by = v.bounds[start + column] ?? NaN;
      sums[column] = (sums[column] ?? NaN) + p * value;
      if (Number.isFinite(value)) {
        magnitudes[column] = (magnitudes[column] ?? NaN) + p * Math.abs(value);
        sizes[column] = (sizes[column] ?? NaN) + Math.abs(value);
      }
      const isOpen = !Number.isFinite(value) && mayVanish;
      spreads[column] = (spreads[column] ?? NaN) + (isOpen ? Infinity : p * (1 + relative) * by);
    }
  }
  for (let j = 0; j < keys; j++) {
    if ((j >= first && j < first + seen) || isFinite(v, j)) continue;
    for (let column = 0; column < e; column++) {
      if (!Number.isFinite(v.numbers[v.start + j * e + column])) spreads[column] = Infinity;
    }
  }
  for (let column = 0; column < e; column++) {
    const [value, size] = [sums[column] ?? NaN, sizes[column] ?? NaN];
    const [magnitude, spread] = [magnitudes[column] ?? NaN, spreads[column] ?? NaN];
    const error = magnitude * (relative + gamma(keys + 2)) + spread + least * (1 + keys + size);
    // Kernels divide by the sum at the end.
    const isInside = (magnitude + error) * sum < overflow;
    output.numbers[place + column] = value;
    output.bounds[place + column] = seen === 0 && size === 0 ? spread : isInside ? error : Infinity;
  }
}
