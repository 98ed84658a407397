/**
 * The buffer that last had each byte of an arena, if several buffers use it at different times. An alloc is compared
 * only with the previous buffers of its bytes. Each buffer follows the one before it, so all of them are in order.
 */
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { arenaOf, sharingBuffers } from "./blocks.ts";

export interface Tenants {
  /** The buffer is allocated. Returns the buffers that had some of its bytes before, in no order. */
  moveIn(buffer: number): readonly number[];
}

interface Range {
  readonly start: number;
  readonly end: number;
  readonly buffer: number;
}

const none: readonly number[] = [];

/** Buffers that are never `allocated` have their bytes from the start. */
export function createTenants({ buffers }: Program, allocated: Uint8Array): Tenants {
  const shares = sharingBuffers(buffers);
  const arenas = new Map<string, Range[]>();
  const rangeOf = (buffer: number): Range => {
    const { offset, bytes } = at(buffers, buffer);
    return { start: offset, end: offset + bytes, buffer };
  };
  const moveIn = (buffer: number): readonly number[] => {
    if (shares[buffer] !== 1) return none;
    const key = arenaOf(at(buffers, buffer));
    const ranges = arenas.get(key) ?? [];
    arenas.set(key, ranges);
    return replace(ranges, rangeOf(buffer));
  };
  for (const { id } of buffers) if (allocated[id] !== 1) moveIn(id);
  return { moveIn };
}

/**
 * Inserts `range` into the sorted ranges in place of the bytes it covers. Returns the other buffers that lose bytes.
 */
function replace(ranges: Range[], range: Range): readonly number[] {
  const first = firstEndingAfter(ranges, range.start);
  let last = first;
  while (last < ranges.length && at(ranges, last).start < range.end) last++;
  const covered = ranges.slice(first, last);
  const [left, right] = [covered[0], covered.at(-1)];
  ranges.splice(
    first,
    last - first,
    ...(left !== undefined && left.start < range.start ? [{ ...left, end: range.start }] : []),
    range,
    ...(right !== undefined && right.end > range.end ? [{ ...right, start: range.end }] : []),
  );
  return [...new Set(covered.map(({ buffer }) => buffer))].filter((buffer) => buffer !== range.buffer);
}

function firstEndingAfter(ranges: readonly Range[], position: number): number {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(ranges, middle).end > position) high = middle;
    else low = middle + 1;
  }
  return low;
}
