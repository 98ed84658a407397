/**
 * Whether the written regions cover a read region. If the written regions are disjoint, the bytes that each shares with
 * the read region add up. Otherwise their runs are merged.
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

/** `isWritten` returns whether all of a region has been written. */
export function findGap(table: RegionTable, region: number, isWritten: (other: number) => boolean): Gap | null {
  const { overlaps, shared, sizes } = table;
  const [start, end] = [at(overlaps.start, region), at(overlaps.start, region + 1)];
  const size = at(sizes, region);
  let covered = 0;
  for (let i = start; i < end; i++) {
    if (!isWritten(at(overlaps.values, i))) continue;
    if (shared[i] === size) return null;
    covered += at(shared, i);
  }
  const writers = overlaps.values.subarray(start, end).filter(isWritten);
  if (covered >= size && areApart(table, writers)) return null;
  return gapBetween(table, region, writers);
}

function areApart({ overlaps }: RegionTable, regions: Int32Array): boolean {
  const chosen = new Set(regions);
  return regions.every((region) => {
    const others = overlaps.values.subarray(at(overlaps.start, region), at(overlaps.start, region + 1));
    return others.every((other) => other === region || !chosen.has(other));
  });
}

/** Merges the runs of all written regions, as ranges of the buffer's bytes. */
function gapBetween({ regions, sizes }: RegionTable, region: number, writers: Int32Array): Gap | null {
  const written = merged([...writers].flatMap((writer) => runsOf(at(regions, writer))));
  let [missing, next] = [0, 0];
  let first: ByteRange | null = null;
  for (const { start, end } of runsOf(at(regions, region)).sort((a, b) => a.start - b.start)) {
    let from = start;
    while (from < end) {
      const range = written[next];
      if (range !== undefined && range.end <= from) {
        next++;
        continue;
      }
      const until = range === undefined ? end : Math.min(end, Math.max(from, range.start));
      if (until > from) {
        first ??= { start: from, end: until };
        missing += until - from;
      }
      from = range === undefined ? end : Math.max(until, Math.min(end, range.end));
    }
  }
  return first === null ? null : { ...first, missing, size: at(sizes, region) };
}

function runsOf({ offset, dims, bytes }: Region): ByteRange[] {
  let starts = [offset];
  for (const { count, stride } of dims) {
    starts = starts.flatMap((start) => Array.from({ length: count }, (_, i) => start + i * stride));
  }
  return starts.map((start) => ({ start, end: start + bytes }));
}

function merged(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const joined: { start: number; end: number }[] = [];
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else joined.push({ start, end });
  }
  return joined;
}
