/** The gradients of attention by their definition, in the notation of the op's row. */
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import type { SdpaBackwardOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { Arithmetic } from "../tolerance.ts";
import { overflowThreshold, type OracleValue } from "../value.ts";
import {
  type Bias,
  biasesOf,
  dot,
  emptyValue,
  finished,
  headsOf,
  type Inexact,
  inexactAt,
  isExactNaN,
  isFinite,
  isSignKnown,
  minus,
  type MutableValue,
  type Rows,
  scoresOf,
  type Setting,
  settingOf,
  times,
  vanishing,
} from "./rows.ts";

export function sdpaBackward(
  op: SdpaBackwardOp,
  operands: readonly OracleValue[],
  arithmetic: Arithmetic,
): readonly OracleValue[] {
  const [g, q, k] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const [v, o, lse] = [at(operands, 3), at(operands, 4), at(operands, 5)];
  const setting = settingOf(op, [q, k, v], arithmetic);
  const { dtype, front, rows, d, e } = setting;
  const [dq, dk, dv] = [emptySums(q.shape), emptySums(k.shape), emptySums(v.shape)];
  const heads = {
    g: headsOf(g, front, e),
    q: headsOf(q, front, d),
    k: headsOf(k, front, d),
    v: headsOf(v, front, e),
    o: headsOf(o, front, e),
    lse: headsOf(lse, front, 1),
  };
  const biases = biasesOf(operands[6], setting);
  for (const head of heads.q.keys()) {
    const own = {
      g: at(heads.g, head),
      q: at(heads.q, head),
      k: at(heads.k, head),
      v: at(heads.v, head),
      o: at(heads.o, head),
      lse: at(heads.lse, head),
    };
    for (let row = 0; row < rows; row++) backwardRow(setting, own, biases(head), row, { dq, dk, dv });
  }
  // Rows of all heads that share keys are added to each other.
  const terms = rows * (elementCount(front) || 1);
  const add = setting.gamma(terms + setting.keys + 8);
  const result = ({ numbers, bounds, sizes }: Sums, shape: readonly number[]): OracleValue => {
    sizes.forEach((size, i) => {
      const error = (bounds[i] ?? NaN) + add * size;
      const isDecided = Number.isNaN(numbers[i]) || size + error < setting.overflow;
      bounds[i] = isDecided ? error : Infinity;
    });
    return finished(dtype, shape, { numbers, bounds });
  };
  return [result(dq, q.shape), result(dk, k.shape), result(dv, v.shape)];
}

/** Sums of terms, of which the finite ones have these `sizes` in all. */
interface Sums extends MutableValue {
  readonly sizes: Float64Array;
}

function emptySums(shape: readonly number[]): Sums {
  const value = emptyValue(shape);
  return { ...value, sizes: new Float64Array(value.numbers.length) };
}

type Names = "g" | "q" | "k" | "v" | "o" | "lse";

function backwardRow(
  setting: Setting,
  { g, q, k, v, o, lse }: Readonly<Record<Names, Rows>>,
  bias: Bias | null,
  row: number,
  { dq, dk, dv }: Readonly<Record<"dq" | "dk" | "dv", Sums>>,
): void {
  const { d, e, scale, keys, least } = setting;
  const seen = setting.seen(row, keys);
  const scores = scoresOf(setting, q, k, bias, row, seen);
  const total = dot(setting, g, row, o, row, e + 2);
  const statistic = inexactAt(lse, lse.start + row);
  // Of a row that sees no key, or only scores of -Infinity.
  const shift = statistic.value === -Infinity && statistic.error === 0 ? { value: 0, error: 0 } : statistic;
  const gradientOf = (p: Inexact, j: number): Inexact => {
    const factor = minus(setting, dot(setting, g, row, v, j, e + 2), total);
    return inDType(setting, times(setting, times(setting, p, factor), { value: scale, error: 0 }));
  };
  // Some back ends multiply by 0 for keys that are not seen, and others leave them out.
  const none = { value: 0, error: Number.isNaN(shift.value) || shift.error === Infinity ? Infinity : 0 };
  for (let j = 0; j < keys; j++) {
    const score = scores[j - seen.first];
    if (score === undefined || (score.value === -Infinity && score.error === 0)) {
      const ds = gradientOf(none, j);
      release(dq, q.start + row * d, k, j, ds);
      release(dk, k.start + j * d, q, row, ds);
      release(dv, v.start + j * e, g, row, none);
      continue;
    }
    const p = probabilityOf(setting, minus(setting, score, shift));
    const ds = gradientOf(p, j);
    contribute(dq, q.start + row * d, k, j, ds, least);
    contribute(dk, k.start + j * d, q, row, ds, least);
    contribute(dv, v.start + j * e, g, row, p, least);
  }
}

function probabilityOf({ gamma, least, overflow, rounding }: Setting, { value, error }: Inexact): Inexact {
  const p = Math.exp(value);
  // Infinity and NaN that operands decide.
  if (!Number.isFinite(value)) return { value: p, error };
  if (value + error < -vanishing) return { value: 0, error: least };
  const relative = Math.expm1(error) + gamma(16) + rounding;
  const own = p * relative + least;
  return { value: p, error: p + own < overflow ? own : Infinity };
}

/** Fused kernels round to a 16-bit dtype, in which numbers may overflow, too. */
function inDType({ dtype, rounding }: Setting, { value, error }: Inexact): Inexact {
  if (rounding === 0 || !Number.isFinite(value)) return { value, error };
  const own = error + rounding * Math.abs(value);
  return { value, error: Math.abs(value) + own < overflowThreshold[dtype] ? own : Infinity };
}

/** Takes the bounds of elements away to which a row of `source` may add 0 times an infinite number or NaN. */
function release({ bounds }: Sums, place: number, source: Rows, row: number, factor: Inexact): void {
  const isZero = Number.isFinite(factor.value) && factor.error < Infinity;
  if (isZero && isFinite(source, row)) return;
  for (let i = 0; i < source.columns; i++) {
    if (!isZero || !Number.isFinite(source.numbers[source.start + row * source.columns + i])) {
      bounds[place + i] = Infinity;
    }
  }
}

/** Adds a row of `source`, times a factor, and the largest error of that. */
function contribute(target: Sums, place: number, source: Rows, row: number, factor: Inexact, least: number): void {
  const start = source.start + row * source.columns;
  const [factorOf, size] = [factor.value, Math.abs(factor.value) + factor.error];
  for (let i = 0; i < source.columns; i++) {
    const value = source.numbers[start + i] ?? NaN;
    const bound = source.bounds[start + i] ?? NaN;
    const term = factorOf * value;
    target.numbers[place + i] = (target.numbers[place + i] ?? 0) + term;
    if (Number.isFinite(term)) {
      target.sizes[place + i] = (target.sizes[place + i] ?? 0) + Math.abs(term);
      const error = factor.error * Math.abs(value) + size * bound + least;
      target.bounds[place + i] = (target.bounds[place + i] ?? 0) + error;
    } else if (!isDecided(factor, { value, error: bound })) target.bounds[place + i] = Infinity;
  }
}

/** Whether an infinite or NaN product is that of infinite or NaN factors. */
function isDecided(a: Inexact, b: Inexact): boolean {
  if (isExactNaN(a) || isExactNaN(b)) return true;
  const areFinite = Number.isFinite(a.value) && Number.isFinite(b.value);
  return !areFinite && isSignKnown(a) && isSignKnown(b);
}
