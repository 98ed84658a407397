/** Runs of a list that stand in it several times in a row: layers of a model, chunks of a loop. */
import { at } from "./invariant.ts";

/** Items `start` to `start + period` stand there `times` times. */
export interface Repeat {
  readonly start: number;
  readonly period: number;
  readonly times: number;
}

/** Items by which the next repetition is looked for. */
const windowItems = 4;
const mostPeriod = 8192;
const mostCandidates = 96;

/**
 * Repeats of equal items, in order, which do not overlap: from the front, each the one that leaves out most items, the
 * shortest of several, if these are at least `least`. Repeats in repeats are not looked for.
 */
export function repeatsOf(items: readonly number[], least: number, leastTimes = 3): readonly Repeat[] {
  const next = nextAlike(items);
  const found: Repeat[] = [];
  for (let start = 0; start < items.length;) {
    const { period, times } = repeatAt(items, next, start, leastTimes);
    const isOne = times > 1 && (times - 1) * period >= least;
    if (isOne) found.push({ start, period, times });
    start += isOne ? period * times : 1;
  }
  return found;
}

/** By item: the next one at which the same `windowItems` items begin; -1 for none. */
function nextAlike(items: readonly number[]): Int32Array {
  const next = new Int32Array(items.length).fill(-1);
  const seen = new Map<string, number>();
  for (let i = items.length - windowItems; i >= 0; i--) {
    const key = items.slice(i, i + windowItems).join(" ");
    next[i] = seen.get(key) ?? -1;
    seen.set(key, i);
  }
  return next;
}

/** Once, if nothing is repeated often enough. */
function repeatAt(
  items: readonly number[],
  next: Int32Array,
  start: number,
  leastTimes: number,
): Omit<Repeat, "start"> {
  let best = { period: 1, times: 1 };
  let tried = 0;
  for (
    let other = next[start] ?? -1;
    other >= 0 && other - start <= mostPeriod && tried < mostCandidates;
    other = at(next, other)
  ) {
    const period = other - start;
    let equal = 0;
    while (other + equal < items.length && items[start + equal] === items[other + equal]) equal++;
    const times = 1 + Math.floor(equal / period);
    if (times >= leastTimes && (times - 1) * period > (best.times - 1) * best.period) best = { period, times };
    tried++;
  }
  return best;
}
