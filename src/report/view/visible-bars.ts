/**
 * What to draw of a track at a zoom: a bar for each slice of at least a pixel, and one bar for all slices that begin in
 * the same pixel. A view therefore costs at most two bars a pixel, however many slices it covers.
 */
import { bisectLeft } from "d3-array";
import { at } from "../../support/invariant.ts";
import type { SliceKind, SliceColumns, Track, SliceWork } from "../data/timeline-data.ts";
import { firstAfter } from "./find.ts";

/** Pixels of a view: `scale` pixels per unit of time, from `from`. */
export interface PixelScale {
  readonly from: number;
  readonly scale: number;
  readonly width: number;
}

export interface BarSink {
  readonly slice: (slice: number, x0: number, x1: number) => void;
  /** Slices `first` to before `last`, all of them within pixel `x`. */
  readonly many: (first: number, last: number, x: number) => void;
}

export function visibleBars(
  slices: SliceColumns,
  track: Track,
  { from, scale, width }: PixelScale,
  sink: BarSink,
): void {
  const { start, duration } = slices;
  const end = track.first + track.count;
  const until = from + width / scale;
  let i = firstAfter(slices, track, from);
  while (i < end && at(start, i) < until) {
    const x0 = (at(start, i) - from) * scale;
    const x1 = x0 + at(duration, i) * scale;
    if (x1 - x0 >= 1) {
      sink.slice(i, x0, x1);
      i++;
      continue;
    }
    const x = Math.floor(x0);
    let next = bisectLeft(start, from + (x + 1) / scale, i + 1, end);
    // The last one of a pixel may reach beyond it.
    if (next - 1 > i && at(duration, next - 1) * scale >= 1) next--;
    if (next === i + 1) sink.slice(i, x0, x1);
    else sink.many(i, next, x);
    i = next;
  }
}

/** Calls `draw` for the chosen slices of a track in view; of those within a pixel, for one. `chosen` ascends. */
export function chosenBars(
  slices: SliceColumns,
  track: Track,
  { from, scale, width }: PixelScale,
  chosen: Int32Array,
  draw: (slice: number, x0: number, x1: number) => void,
): void {
  const { start, duration } = slices;
  const end = bisectLeft(chosen, track.first + track.count, 0, chosen.length);
  let i = bisectLeft(chosen, firstAfter(slices, track, from), 0, end);
  while (i < end) {
    const slice = at(chosen, i);
    const x0 = (at(start, slice) - from) * scale;
    if (x0 > width) return;
    const x1 = x0 + at(duration, slice) * scale;
    draw(slice, x0, Math.max(x0 + 1, x1));
    i++;
    if (x1 - x0 >= 1) continue;
    const next = bisectLeft(start, from + (Math.floor(x0) + 1) / scale, slice + 1, track.first + track.count);
    i = bisectLeft(chosen, next, i, end);
  }
}

// How much of a stretch of time the slices of each kind fill, without a look at every slice: sums over blocks of slices
// are kept, so a stretch costs two blocks however many slices it has.

export const sliceKinds = [
  "gemm",
  "kernel",
  "copy",
  "transfer",
  "localCopy",
  "wait",
  "order",
  "mark",
] as const satisfies readonly SliceKind[];

const block = 16;
const waits = sliceKinds.indexOf("wait");

export interface Coverage {
  /** The kind that fills most of slices `from` to before `to`, and the time that all but waits fill. */
  readonly between: (from: number, to: number) => Covered;
}

interface Covered {
  readonly kind: SliceKind;
  readonly busy: number;
}

export function createCoverage({ duration, work }: SliceColumns, works: readonly SliceWork[]): Coverage {
  const kindOf = Uint8Array.from(works, ({ kind }) => sliceKinds.indexOf(kind));
  const kinds = sliceKinds.length;
  const blocks = Math.floor(duration.length / block);
  /** Before each block, by kind. */
  const before = new Float64Array((blocks + 1) * kinds);
  for (let b = 0; b < blocks; b++) {
    const [own, next] = [b * kinds, (b + 1) * kinds];
    for (let kind = 0; kind < kinds; kind++) before[next + kind] = at(before, own + kind);
    for (let i = b * block; i < (b + 1) * block; i++) {
      const place = next + at(kindOf, at(work, i));
      before[place] = at(before, place) + at(duration, i);
    }
  }
  const sums = new Float64Array(kinds);
  // A view asks for thousands of stretches, so these loops make no objects.
  const add = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      const kind = kindOf[work[i] ?? 0] ?? 0;
      sums[kind] = (sums[kind] ?? 0) + (duration[i] ?? 0);
    }
  };
  return {
    between: (from, to) => {
      sums.fill(0);
      const [first, last] = [Math.ceil(from / block), Math.floor(to / block)];
      if (first >= last) add(from, to);
      else {
        add(from, first * block);
        for (let kind = 0; kind < kinds; kind++) {
          sums[kind] = (sums[kind] ?? 0) + (before[last * kinds + kind] ?? 0) - (before[first * kinds + kind] ?? 0);
        }
        add(last * block, to);
      }
      let [best, busy] = [at(kindOf, at(work, from)), 0];
      for (let kind = 0; kind < kinds; kind++) {
        const sum = sums[kind] ?? 0;
        if (sum > (sums[best] ?? 0)) best = kind;
        if (kind !== waits) busy += sum;
      }
      return { kind: at(sliceKinds, best), busy };
    },
  };
}
