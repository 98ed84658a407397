/**
 * Whether the written regions cover a read region. If the written regions are disjoint, the bytes that each shares with
 * the read region add up. Otherwise their runs are walked in order.
 */
import type { Region } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import type { RegionTable } from "./region-table.ts";

/** Bytes of a buffer, from `start` up to `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The missing part of `region`: the first bytes that no written region has, and their number; null if none is missing.
 */
export interface Gap extends ByteRange {
  readonly missing: number;
  /** The bytes of the whole region. */
  readonly size: number;
}

type Regions = Pick<RegionTable, "regions" | "sizes" | "overlaps" | "shared">;

/** `isWritten` returns whether all of a region has been written. */
export function findGap(table: Regions, region: number, isWritten: (other: number) => boolean): Gap | null {
  return isCovered(table, region, isWritten) ? null : gapBetween(table, region, writersOf(table, region, isWritten));
}

/** The same by counting shared bytes alone; where that does not show it, all of the region counts as missing. */
export function findGapByCounts(table: Regions, region: number, isWritten: (other: number) => boolean): Gap | null {
  if (isCovered(table, region, isWritten)) return null;
  const size = at(table.sizes, region);
  const { offset: start } = at(table.regions, region);
  return { start, end: start + size, missing: size, size };
}

function isCovered(table: Regions, region: number, isWritten: (other: number) => boolean): boolean {
  const { overlaps, shared, sizes } = table;
  const [start, end] = [at(overlaps.start, region), at(overlaps.start, region + 1)];
  const size = at(sizes, region);
  let covered = 0;
  for (let i = start; i < end; i++) {
    if (!isWritten(at(overlaps.values, i))) continue;
    if (shared[i] === size) return true;
    covered += at(shared, i);
  }
  return covered >= size && areApart(table, writersOf(table, region, isWritten));
}

function writersOf({ overlaps }: Regions, region: number, isWritten: (other: number) => boolean): Int32Array {
  return overlaps.values.subarray(at(overlaps.start, region), at(overlaps.start, region + 1)).filter(isWritten);
}

function areApart({ overlaps }: Regions, regions: Int32Array): boolean {
  const chosen = new Set(regions);
  return regions.every((region) => {
    const others = overlaps.values.subarray(at(overlaps.start, region), at(overlaps.start, region + 1));
    return others.every((other) => other === region || !chosen.has(other));
  });
}

/** Walks the runs of the region and of all written regions side by side, so that memory does not grow with the runs. */
function gapBetween({ regions, sizes }: Regions, region: number, writers: Int32Array): Gap | null {
  const wanted = createRuns(at(regions, region));
  const written = sortedByStart([...writers].map((writer) => createRuns(at(regions, writer), wanted.start())));
  let missing = 0;
  let first: ByteRange | null = null;
  /** The furthest end of the written runs that have begun. */
  let coveredTo = 0;
  do {
    const end = wanted.start() + wanted.bytes;
    let from = wanted.start();
    while (from < end) {
      let next = written.at(-1);
      while (next !== undefined && next.start() <= from) {
        coveredTo = Math.max(coveredTo, next.start() + next.bytes);
        advanceLast(written);
        next = written.at(-1);
      }
      if (coveredTo > from) {
        from = coveredTo;
        continue;
      }
      const until = next === undefined ? end : Math.min(end, next.start());
      first ??= { start: from, end: until };
      missing += until - from;
      from = until;
    }
  } while (wanted.advance());
  return first === null ? null : { ...first, missing, size: at(sizes, region) };
}

/** The runs of a region one after the other, in ascending order. */
interface Runs {
  /** The first byte of the present run. */
  readonly start: () => number;
  readonly bytes: number;
  /** Goes to the next run. False, at the first one again, after the last. */
  readonly advance: () => boolean;
}

/** Begins with the last run that begins at or before `from`, or else with the first. */
function createRuns({ offset, dims, bytes }: Region, from = offset): Runs {
  let start = offset;
  const index = dims.map(({ count, stride }) => {
    const skipped = Math.min(count - 1, Math.max(0, Math.floor((from - start) / stride)));
    start += skipped * stride;
    return skipped;
  });
  return {
    start: () => start,
    bytes,
    advance: () => {
      for (let axis = dims.length - 1; axis >= 0; axis--) {
        const { count, stride } = at(dims, axis);
        const next = at(index, axis) + 1;
        if (next < count) {
          index[axis] = next;
          start += stride;
          return true;
        }
        index[axis] = 0;
        start -= (count - 1) * stride;
      }
      return false;
    },
  };
}

/** The last has the smallest start. */
function sortedByStart(runs: readonly Runs[]): Runs[] {
  return runs.toSorted((a, b) => b.start() - a.start());
}

/** Advances the one with the smallest start, and moves it to its new place. */
function advanceLast(sorted: Runs[]): void {
  const runs = sorted.pop();
  if (runs === undefined || !runs.advance()) return;
  let place = sorted.length;
  for (; place > 0 && at(sorted, place - 1).start() < runs.start(); place--) sorted[place] = at(sorted, place - 1);
  sorted[place] = runs;
}
