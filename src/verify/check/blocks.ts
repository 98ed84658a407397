/**
 * Buffers that callers bind, and buffers that share bytes: temporaries that `link` placed in the same memory at
 * different times.
 */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import type { Region } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import { createFloatList, createIntList, type ClockRows } from "../order/known.ts";
import { type Extent, sharedBytes, sizeOf, spanOf } from "./shared-bytes.ts";
import { pushTo } from "../../support/lists.ts";

/** By buffer, of those of `some` ranks: whether another buffer shares some of its bytes. */
export function sharingBuffers(buffers: readonly PlacedBuffer[], some = buffers): Uint8Array {
  const shares = new Uint8Array(buffers.length);
  for (const arena of byArena(some).values()) {
    arena.sort((a, b) => a.offset - b.offset || a.id - b.id);
    let widest: PlacedBuffer | null = null;
    for (const buffer of arena) {
      if (buffer.bytes === 0) continue;
      if (widest !== null && widest.offset + widest.bytes > buffer.offset) {
        shares[widest.id] = 1;
        shares[buffer.id] = 1;
      }
      if (widest === null || buffer.offset + buffer.bytes > widest.offset + widest.bytes) widest = buffer;
    }
  }
  return shares;
}

/** By buffer: 1 if a list allocates it. The others are alive all the time. */
export function allocatedBuffers({ buffers, ranks }: Program): Uint8Array {
  const allocated = new Uint8Array(buffers.length);
  for (const { commands } of ranks) {
    for (const command of commands) if (command.kind === "alloc") allocated[command.buffer] = 1;
  }
  return allocated;
}

/** The arena of a rank, as a key. */
export function arenaOf({ rank, arena }: PlacedBuffer): string {
  return `${rank} ${arena}`;
}

function byArena(buffers: readonly PlacedBuffer[]): ReadonlyMap<string, PlacedBuffer[]> {
  const arenas = new Map<string, PlacedBuffer[]>();
  for (const buffer of buffers) {
    pushTo(arenas, arenaOf(buffer), buffer);
  }
  return arenas;
}

/** The buffers that each rank's caller writes before a run, and reads after it. */
export function boundBuffers(
  buffers: readonly PlacedBuffer[],
  rankCount: number,
): Readonly<Record<"inputs" | "outputs", readonly (readonly PlacedBuffer[])[]>> {
  const inputs = Array.from({ length: rankCount }, (): PlacedBuffer[] => []);
  const outputs = Array.from({ length: rankCount }, (): PlacedBuffer[] => []);
  for (const buffer of buffers) {
    if (buffer.bytes === 0) continue;
    if (buffer.role === "input") at(inputs, buffer.rank).push(buffer);
    if (buffer.role === "output" || buffer.output !== undefined) at(outputs, buffer.rank).push(buffer);
  }
  return { inputs, outputs };
}

// Which regions of a buffer share bytes. Each pair is compared once, however often the regions are used. Sorted by
// first byte, a region is compared with those that began before it and have not ended.

export interface Overlaps {
  /** By region: the regions that share bytes with it, itself first. */
  readonly overlaps: ClockRows;
  /** For each value of `overlaps`: the number of shared bytes. */
  readonly shared: Float64Array;
}

interface Placed extends Extent {
  readonly region: number;
  readonly end: number;
}

export function overlapsOf(regions: readonly Region[]): Overlaps {
  const buffers = new Map<number, Placed[]>();
  for (const [region, { buffer, offset, dims, bytes }] of regions.entries()) {
    const placed = { region, start: offset, dims, bytes, end: offset + spanOf({ dims, bytes }) };
    pushTo(buffers, buffer, placed);
  }
  const [ones, others, bytes] = [createIntList(), createIntList(), createFloatList()];
  for (const inBuffer of buffers.values()) {
    inBuffer.sort((a, b) => a.start - b.start);
    let open: Placed[] = [];
    for (const placed of inBuffer) {
      open = open.filter(({ end }) => end > placed.start);
      for (const other of open) {
        const shared = sharedBytes(other, placed);
        if (shared === 0) continue;
        ones.push(other.region);
        others.push(placed.region);
        bytes.push(shared);
      }
      open.push(placed);
    }
  }
  return symmetric(regions, ones.toArray(), others.toArray(), bytes.toArray());
}

/** Rows in both directions, each region first in its own row. */
function symmetric(regions: readonly Region[], ones: Int32Array, others: Int32Array, bytes: Float64Array): Overlaps {
  const start = new Int32Array(regions.length + 1);
  const degree = new Int32Array(regions.length).fill(1);
  for (const region of ones) degree[region] = at(degree, region) + 1;
  for (const region of others) degree[region] = at(degree, region) + 1;
  for (const [region, count] of degree.entries()) start[region + 1] = at(start, region) + count;
  const values = new Int32Array(at(start, regions.length));
  const shared = new Float64Array(values.length);
  const next = start.slice(0, regions.length);
  const add = (region: number, other: number, count: number): void => {
    const place = at(next, region);
    values[place] = other;
    shared[place] = count;
    next[region] = place + 1;
  };
  for (const [region, extent] of regions.entries()) add(region, region, sizeOf(extent));
  for (const [i, count] of bytes.entries()) {
    add(at(ones, i), at(others, i), count);
    add(at(others, i), at(ones, i), count);
  }
  return { overlaps: { start, values }, shared };
}
