/** Finds slices of a track by time. */
import type { Slices, Track } from "../data/timeline-data.ts";
import { at } from "../../support/invariant.ts";

/** The first of the sorted values, from `low` to before `high`, that is at least `value`; `high` without one. */
export function lowerBound(values: ArrayLike<number>, value: number, low: number, high: number): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((values[middle] ?? 0) < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The first slice of a track that may reach beyond `time`; the track's end without one. */
export function firstAfter({ start, duration }: Slices, { first, count }: Track, time: number): number {
  const found = lowerBound(start, time, first, first + count);
  return found > first && at(start, found - 1) + at(duration, found - 1) > time ? found - 1 : found;
}

/** The slice of a track at a time, or the nearest within `slack` of it; -1 without one. */
export function sliceAt(slices: Slices, track: Track, time: number, slack: number): number {
  const { start, duration } = slices;
  const end = track.first + track.count;
  let [best, distance] = [-1, slack];
  for (let i = firstAfter(slices, track, time - slack); i < end && at(start, i) <= time + slack; i++) {
    const from = at(start, i);
    const away = Math.max(from - time, time - from - at(duration, i), 0);
    // Of two that touch at this time, the one that begins.
    if (away <= distance) [best, distance] = [i, away];
  }
  return best;
}
