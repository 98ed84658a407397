/** The gradients of attention by their definition, in the notation of the op's row. */
import type { SdpaBackwardOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { Value } from "../value.ts";
import {
  dot,
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

export function sdpaBackward(op: SdpaBackwardOp, operands: readonly Value[]): readonly Value[] {
  const [g, q, k] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const [v, o, lse] = [at(operands, 3), at(operands, 4), at(operands, 5)];
  const setting = settingOf(op, q, k, v);
  const { dtype, front, rows, d, e } = setting;
  const [dq, dk, dv] = [emptyValue(q.shape), emptyValue(k.shape), emptyValue(v.shape)];
  const heads = {
    g: headsOf(g, front, e),
    q: headsOf(q, front, d),
    k: headsOf(k, front, d),
    v: headsOf(v, front, e),
    o: headsOf(o, front, e),
    lse: headsOf(lse, front, 1),
  };
  for (const head of heads.q.keys()) {
    const own = {
      g: at(heads.g, head),
      q: at(heads.q, head),
      k: at(heads.k, head),
      v: at(heads.v, head),
      o: at(heads.o, head),
      lse: at(heads.lse, head),
    };
    for (let row = 0; row < rows; row++) backwardRow(setting, own, row, { dq, dk, dv });
  }
  // Rows of all heads that share keys are added to each other.
  const terms = rows * (front.reduce((product, extent) => product * extent, 1) || 1);
  const add = setting.gamma(terms + setting.keys + 2);
  for (const { numbers, bounds } of [dq, dk, dv]) {
    numbers.forEach((number, i) => {
      bounds[i] = (bounds[i] ?? NaN) + add * Math.abs(number);
    });
  }
  return [finished(dtype, q.shape, dq), finished(dtype, k.shape, dk), finished(dtype, v.shape, dv)];
}

type Names = "g" | "q" | "k" | "v" | "o" | "lse";

function backwardRow(
  setting: Setting,
  { g, q, k, v, o, lse }: Readonly<Record<Names, Rows>>,
  row: number,
  { dq, dk, dv }: Readonly<Record<"dq" | "dk" | "dv", MutableValue>>,
): void {
  const { d, e, scale, gamma, rounding, rows, least } = setting;
  const seen = setting.seen(row);
  const { scores, errors } = scoresOf(setting, q, k, row, seen);
  const total = dot(g, row, o, row, gamma(e + 2));
  const statistic = lse.numbers[lse.start + row] ?? NaN;
  const statisticError = (lse.bounds[lse.start + row] ?? NaN) + gamma(2) * Math.abs(statistic);
  const sums = gamma(rows + setting.keys + 8);
  for (let j = 0; j < seen; j++) {
    const p = Math.exp((scores[j] ?? NaN) - statistic);
    const relative = Math.expm1((errors[j] ?? NaN) + statisticError) + gamma(16) + rounding;
    const dp = dot(g, row, v, j, gamma(e + 2));
    const ds = p * (dp.sum - total.sum) * scale;
    const size = Math.abs(dp.sum) + Math.abs(total.sum);
    // Of probabilities and products that underflow, too.
    const error =
      Math.abs(scale) *
        ((p * (1 + relative) + least) * (dp.error + total.error + gamma(4) * size) +
          (p * (relative + rounding) + least) * size +
          least) +
      least;
    contribute(dq, q.start + row * d, k, j, { value: ds, error }, sums, least);
    contribute(dk, k.start + j * d, q, row, { value: ds, error }, sums, least);
    contribute(dv, v.start + j * e, g, row, { value: p, error: p * relative + least }, sums, least);
  }
  // 0 times an infinite element of a key, or a row, that is not seen is NaN in some back ends.
  for (let j = seen; j < setting.keys; j++) {
    release(dq, q.start + row * d, k, j);
    release(dk, k.start + j * d, q, row);
    release(dv, v.start + j * e, g, row);
  }
}

/** Takes the bounds of elements away to which a row of `source` adds 0 times an infinite number or NaN. */
function release({ bounds }: MutableValue, place: number, source: Rows, row: number): void {
  if (isFinite(source, row)) return;
  for (let i = 0; i < source.columns; i++) {
    if (!Number.isFinite(source.numbers[source.start + row * source.columns + i])) bounds[place + i] = Infinity;
  }
}

/** Adds a row of `source`, times a factor, and the largest error of that. */
function contribute(
  target: MutableValue,
  place: number,
  source: Rows,
  row: number,
  factor: { readonly value: number; readonly error: number },
  gamma: number,
  least: number,
): void {
  const factorOf = factor.value;
  const perSize = factor.error + gamma * Math.abs(factorOf);
  const perBound = Math.abs(factorOf) + factor.error;
  const start = source.start + row * source.columns;
  for (let i = 0; i < source.columns; i++) {
    const value = source.numbers[start + i] ?? NaN;
    const bound = source.bounds[start + i] ?? NaN;
    const term = factorOf * value;
    target.numbers[place + i] = (target.numbers[place + i] ?? 0) + term;
    const error = perSize * Math.abs(value) + perBound * bound + least;
    target.bounds[place + i] = (target.bounds[place + i] ?? 0) + (Number.isFinite(term) ? error : Infinity);
  }
}
