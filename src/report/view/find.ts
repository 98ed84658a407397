/** Finds slices of a track by time. */
import { bisectLeft } from "d3-array";
import { at } from "../../support/invariant.ts";
import type { SliceColumns, Track } from "../data/timeline-data.ts";

/** The first slice of a track that may reach beyond `time`; the track's end without one. */
export function firstAfter({ start, duration }: SliceColumns, { first, count }: Track, time: number): number {
  const found = bisectLeft(start, time, first, first + count);
  return found > first && at(start, found - 1) + at(duration, found - 1) > time ? found - 1 : found;
}

/** The slice of a track at a time, or the nearest within `slack` of it; -1 without one. */
export function sliceAt(slices: SliceColumns, track: Track, time: number, slack: number): number {
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

// The arrows at a slice: what it waited for, and what waited for it.

export type SliceArrow = readonly [from: number, to: number];

/** More arrows at one slice would hide the picture. */
const most = 64;

/** What waited for each slice is sorted when it is first asked for. */
export function createArrows({ edgeStart, edges }: SliceColumns): (slice: number) => readonly SliceArrow[] {
  let reverse: { readonly start: Int32Array; readonly to: Int32Array } | null = null;
  return (slice) => {
    reverse ??= reversed(edgeStart, edges);
    const into = [...edges.subarray(at(edgeStart, slice), at(edgeStart, slice + 1))];
    const out = [...reverse.to.subarray(at(reverse.start, slice), at(reverse.start, slice + 1))];
    return [...into.map((from): SliceArrow => [from, slice]), ...out.map((to): SliceArrow => [slice, to])].slice(
      0,
      most,
    );
  };
}

function reversed(edgeStart: Int32Array, edges: Int32Array): { readonly start: Int32Array; readonly to: Int32Array } {
  const start = new Int32Array(edgeStart.length + 1);
  for (const from of edges) start[from + 2] = at(start, from + 2) + 1;
  for (let i = 2; i < start.length; i++) start[i] = at(start, i) + at(start, i - 1);
  const to = new Int32Array(edges.length);
  for (let slice = 0; slice + 1 < edgeStart.length; slice++) {
    for (let k = at(edgeStart, slice); k < at(edgeStart, slice + 1); k++) {
      const from = at(edges, k);
      to[at(start, from + 1)] = slice;
      start[from + 1] = at(start, from + 1) + 1;
    }
  }
  return { start, to };
}
