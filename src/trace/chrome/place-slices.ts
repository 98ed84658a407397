/**
 * Places slices on a grid of whole nanoseconds so that a viewer can draw them: every slice has a length, slices of one
 * stream never overlap, and none starts before what it depends on. Clocks of threads differ by microseconds and have
 * coarse ticks, so measured times alone guarantee none of this. A slice moves only to a later time, and only as far as
 * needed.
 */
import { at, invariant } from "../../support/invariant.ts";

export interface PlacedTimes {
  /** In nanoseconds from the start of the run, by slice. */
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

export interface TrackSlice {
  /** Slices of one track come in its order. */
  readonly track: number;
  /** In milliseconds. */
  readonly start: number;
  readonly end: number;
}

/** A dependency: slice `to` does not start before slice `from`. */
export interface SlicePair {
  readonly from: number;
  readonly to: number;
}

const nanosecondsPerMillisecond = 1e6;

/** One pass in an order that serves tracks and dependencies (Kahn's algorithm). */
export function placeSlices(slices: readonly TrackSlice[], pairs: readonly SlicePair[]): PlacedTimes {
  const successors = slices.map((): number[] => []);
  const open = new Int32Array(slices.length);
  const lastOf = new Map<number, number>();
  const nextOnTrack = new Int32Array(slices.length).fill(-1);
  for (const [i, { track }] of slices.entries()) {
    const last = lastOf.get(track);
    if (last !== undefined) {
      nextOnTrack[last] = i;
      open[i] = 1;
    }
    lastOf.set(track, i);
  }
  for (const { from, to } of pairs) {
    at(successors, from).push(to);
    open[to] = at(open, to) + 1;
  }
  const starts = Float64Array.from(slices, ({ start }) => nanoseconds(start));
  const ends = new Float64Array(slices.length);
  const ready = slices.flatMap((_, i) => (open[i] === 0 ? [i] : []));
  let placed = 0;
  for (let i = ready.pop(); i !== undefined; i = ready.pop()) {
    placed++;
    const start = at(starts, i);
    const end = Math.max(nanoseconds(at(slices, i).end), start + 1);
    ends[i] = end;
    const release = (next: number, earliest: number): void => {
      starts[next] = Math.max(at(starts, next), earliest);
      open[next] = at(open, next) - 1;
      if (open[next] === 0) ready.push(next);
    };
    const next = at(nextOnTrack, i);
    if (next !== -1) release(next, end);
    for (const successor of at(successors, i)) release(successor, start);
  }
  invariant(placed === slices.length, "the commands of a run that ended have an order", { placed, of: slices.length });
  return { starts, ends };
}

function nanoseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * nanosecondsPerMillisecond));
}
