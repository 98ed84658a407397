/** Sets of moments: when streams of a run are busy, and how long several are at once. */

/** Sets of moments as sorted, disjoint intervals, for sums in which no moment counts twice. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

/** The moments in any of the intervals. */
export function unionOf(intervals: readonly Interval[]): readonly Interval[] {
  const joined: Interval[] = [];
  for (const { start, end } of intervals.toSorted((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    if (end <= start) continue;
    if (last === undefined || start > last.end) joined.push({ start, end });
    else joined[joined.length - 1] = { start: last.start, end: Math.max(last.end, end) };
  }
  return joined;
}

/** The moments in both; each argument is a result of `unionOf`. */
export function intersectionOf(a: readonly Interval[], b: readonly Interval[]): readonly Interval[] {
  const common: Interval[] = [];
  let first = 0;
  for (const { start, end } of a) {
    while ((b[first]?.end ?? Infinity) <= start) first++;
    for (let i = first; i < b.length; i++) {
      const other = b[i];
      if (other === undefined || other.start >= end) break;
      common.push({ start: Math.max(start, other.start), end: Math.min(end, other.end) });
    }
  }
  return common;
}

export function lengthOf(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { start, end }) => sum + end - start, 0);
}
