/**
 * What is known of masks and positions without looking at their elements: that an element is a sum of its indices times
 * whole numbers, or whether such sums are at least 0. That holds for any sizes, so a causal mask of 100,000 tokens, or of
 * a symbolic number of them, is recognized from the ops that make it.
 */
import type { SeenKeys } from "../ir/ops/kinds/attention/attention.ts";
import { at } from "../support/invariant.ts";

/** offset + sum of steps[i] index[i]. Axes of extent 1 have the step 0. */
export interface Sum {
  readonly offset: number;
  readonly steps: readonly number[];
}

/** A sum, or whether each of several is at least 0. */
export type IndexForm =
  { readonly kind: "sum"; readonly sums: readonly [Sum] } | { readonly kind: "test"; readonly sums: readonly Sum[] };

/** A number everywhere. */
export function uniform(offset: number, rank: number): IndexForm {
  return countForm({ offset, steps: Array.from({ length: rank }, () => 0) });
}

export function countForm(sum: Sum): IndexForm {
  return { kind: "sum", sums: [sum] };
}

/** The number that all elements are, or null. */
export function uniformIn({ kind, sums: [sum] }: IndexForm): number | null {
  return kind === "sum" && sum?.steps.every((step) => step === 0) === true ? sum.offset : null;
}

export function mapped(form: IndexForm, change: (sum: Sum) => Sum): IndexForm {
  return form.kind === "sum" ? countForm(change(form.sums[0])) : { kind: "test", sums: form.sums.map(change) };
}

/** Joins two sums of up to `rank` axes. */
function joined(a: IndexForm, b: IndexForm, rank: number, sign: 1 | -1): Sum | null {
  if (a.kind !== "sum" || b.kind !== "sum") return null;
  const [[x], [y]] = [a.sums, b.sums];
  const step = ({ steps }: Sum, axis: number): number => steps[axis - rank + steps.length] ?? 0;
  const steps = Array.from({ length: rank }, (_, axis) => step(x, axis) + sign * step(y, axis));
  return { offset: x.offset + sign * y.offset, steps };
}

/** a + b, or a - b. */
export function addedForm(a: IndexForm, b: IndexForm, rank: number, sign: 1 | -1): IndexForm | null {
  const sum = joined(a, b, rank, sign);
  return sum === null ? null : countForm(sum);
}

/** Whether a >= b + margin. */
export function orderForm(a: IndexForm, b: IndexForm, margin: 0 | 1, sizes: readonly unknown[]): IndexForm | null {
  const difference = joined(a, b, sizes.length, -1);
  return difference === null ? null : decided({ ...difference, offset: difference.offset - margin }, sizes);
}

/** Whether a = b, or not: known where the difference is the same everywhere. */
export function equalForm(a: IndexForm, b: IndexForm, equal: boolean, rank: number): IndexForm | null {
  const difference = joined(a, b, rank, -1);
  const known = difference === null ? null : uniformIn(countForm(difference));
  return known === null ? null : uniform(Number((known === 0) === equal), rank);
}

/** Of conditions, both (`neutral` is 1) or one of them (0): with `neutral` the other one stays; the opposite decides. */
export function logicalForm(pair: readonly IndexForm[], neutral: 0 | 1, rank: number): IndexForm | null {
  const forms = pair.map((form) => raisedForm(form, rank));
  const known = forms.map(uniformIn);
  if (forms.some(({ kind }, i) => kind === "sum" && known[i] !== 0 && known[i] !== 1)) return null;
  if (known.includes(1 - neutral)) return uniform(1 - neutral, rank);
  const [a, b] = forms.filter((_, i) => known[i] !== neutral);
  if (a === undefined) return uniform(neutral, rank);
  if (b === undefined || JSON.stringify(a) === JSON.stringify(b)) return a;
  return neutral === 1 ? { kind: "test", sums: [...a.sums, ...b.sums] } : null;
}

/** What those of the conditions show whose forms are known, and the others. */
export function knownConditions<T>(
  conditions: readonly T[],
  formOf: (condition: T) => IndexForm | null,
  rank: number,
): { readonly form: IndexForm | null; readonly rest: readonly T[] } {
  let form: IndexForm | null = uniform(1, rank);
  const rest = conditions.filter((condition) => {
    const own = formOf(condition);
    if (own !== null) form = form && logicalForm([form, own], 1, rank);
    return own === null;
  });
  return { form, rest };
}

/** Whether a sum is at least 0: a constant where no index, or every index, passes. */
function decided(test: Sum, sizes: readonly unknown[]): IndexForm {
  let [least, most] = [test.offset, test.offset];
  test.steps.forEach((step, axis) => {
    const size = at(sizes, axis);
    const reach = step === 0 ? 0 : step * (typeof size === "number" ? size - 1 : Infinity);
    least += Math.min(0, reach);
    most += Math.max(0, reach);
  });
  if (least >= 0) return uniform(1, sizes.length);
  return most < 0 ? uniform(0, sizes.length) : { kind: "test", sums: [test] };
}

export function raisedForm(form: IndexForm, rank: number): IndexForm {
  return mapped(form, ({ offset, steps }) => ({
    offset,
    steps: [...Array.from({ length: rank - steps.length }, () => 0), ...steps],
  }));
}

/**
 * What a mask [.., Lq, Lk] lets queries see: query i sees key j where i - j + offset >= 0, and of a window, where j - i +
 * window - 1 - offset >= 0, too. Null: something else.
 */
export function maskIn(form: IndexForm, sizes: readonly unknown[]): SeenKeys | null {
  if (form.kind === "sum") return (uniformIn(form) ?? 0) === 0 ? null : { causal: null, window: null };
  const offsetsOf = (sign: 1 | -1): readonly number[] =>
    form.sums.flatMap(({ offset, steps }) => {
      const [rows, keys] = steps.slice(-2);
      const isOther = rows !== sign || keys !== -sign || steps.slice(0, -2).some((step) => step !== 0);
      return isOther ? [] : [offset];
    });
  const [before, after] = [offsetsOf(1), offsetsOf(-1)];
  if (before.length === 0 || before.length + after.length < form.sums.length) return null;
  const offset = Math.min(...before);
  const window = after.length === 0 ? null : Math.min(...after) + 1 + offset;
  const [queryCount, keyCount] = sizes.slice(-2);
  const isLast = typeof queryCount === "number" && typeof keyCount === "number" && offset === keyCount - queryCount;
  if ((offset !== 0 && !isLast) || (window !== null && window < 1)) return null;
  return { causal: offset === 0 ? "topLeft" : "bottomRight", window };
}
