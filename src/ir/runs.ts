/** Sets of indices of an axis, as runs. */
import { at } from "../support/invariant.ts";

/** The indices from `start` to `stop` - 1. */
export interface Run {
  readonly start: number;
  readonly stop: number;
}

/** Not empty, ascending, and joined where they touch. */
export type Runs = readonly Run[];

/** One run, or none if it would be empty. */
export function runsBetween(start: number, stop: number): Runs {
  return start < stop ? [{ start, stop }] : [];
}

/** The runs in ascending order, joined where they touch. */
export function joined(runs: Runs): Runs {
  const result: Run[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last?.stop === run.start) result[result.length - 1] = { start: last.start, stop: run.stop };
    else result.push(run);
  }
  return result;
}

/** The number of indices. */
export function countIn(runs: Runs): number {
  return runs.reduce((count, { start, stop }) => count + stop - start, 0);
}

/** The number of indices below `index`: the position of that index in memory if it is held. */
export function countBelow(runs: Runs, index: number): number {
  return runs.reduce((count, { start, stop }) => count + Math.max(0, Math.min(stop, index) - start), 0);
}

export function sameRuns(a: Runs, b: Runs): boolean {
  return (
    a === b || (a.length === b.length && a.every(({ start, stop }, i) => b[i]?.start === start && b[i].stop === stop))
  );
}

/** The indices in both. */
export function intersection(a: Runs, b: Runs): Runs {
  const result: Run[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const [one, other] = [at(a, i), at(b, j)];
    result.push(...runsBetween(Math.max(one.start, other.start), Math.min(one.stop, other.stop)));
    if (one.stop <= other.stop) i++;
    else j++;
  }
  return result;
}

/** The indices of `a` that are not in `b`. */
export function difference(a: Runs, b: Runs): Runs {
  return a.flatMap(({ start, stop }) => {
    const rest: Run[] = [];
    let from = start;
    for (const taken of b) {
      if (taken.stop <= from || taken.start >= stop) continue;
      rest.push(...runsBetween(from, taken.start));
      from = taken.stop;
    }
    return [...rest, ...runsBetween(from, stop)];
  });
}

/** The indices in positions `start` to `stop` - 1 of memory. */
export function onPositions(runs: Runs, start: number, stop: number): Runs {
  let position = 0;
  return runs.flatMap((run) => {
    const from = run.start - position;
    position += run.stop - run.start;
    return runsBetween(Math.max(run.start, from + start), Math.min(run.stop, from + stop));
  });
}
