/**
 * Every distinct region that a Program's commands and callers touch, numbered; per node which regions it reads and
 * writes; and per region which others share bytes with it (blocks.ts).
 */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import { type CommandKind, isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { accesses, canonicalRegion, type Region, regionBytes } from "../../commands/region.ts";
import { at, groupedBy, pushTo } from "../../support/invariant.ts";
import type { Graph } from "../order/graph.ts";
import { createRows, type ClockRows, createFloatList, createIntList } from "../order/known.ts";
import { type Extent, sharedBytes, spanOf } from "./shared-bytes.ts";

export interface RegionTable extends Overlaps {
  readonly regions: readonly Region[];
  /** By region, in bytes. */
  readonly sizes: Float64Array;
  /** By region. */
  readonly buffer: Int32Array;
  /** By node. */
  readonly reads: ClockRows;
  readonly writes: ClockRows;
  /**
   * By buffer: the region of all its bytes; -1 if it shares no bytes with another buffer and no node touches all of it.
   */
  readonly whole: Int32Array;
}

export function createRegionTable({ program, nodeCount }: Graph): RegionTable {
  const rows = createTableRows(program, nodeCount);
  const { inputs, outputs } = boundBuffers(program.buffers, program.ranks.length);
  for (const [rank, { commands }] of program.ranks.entries()) {
    for (const buffer of at(inputs, rank)) rows.write(wholeBuffer(buffer));
    rows.close();
    for (const [index, command] of commands.entries()) {
      if (touchesMemory(command.kind)) {
        const touched = accesses(program, rank, index);
        for (const region of touched.reads) rows.read(region);
        for (const region of touched.writes) rows.write(region);
      }
      rows.close();
    }
    for (const buffer of at(outputs, rank)) rows.read(wholeBuffer(buffer));
    rows.close();
  }
  return rows.finish(program.buffers);
}

export function touchesMemory(kind: CommandKind): boolean {
  return isWork(kind) || kind === "alloc" || kind === "free";
}

export interface TableRows {
  /** Adds to the open row. Empty regions are left out. */
  read(region: Region): void;
  write(region: Region): void;
  /** Ends the open row. */
  close(): void;
  /** `some`: the buffers of the ranks whose sharing of bytes counts. */
  finish(some: readonly PlacedBuffer[]): RegionTable;
}

export function createTableRows({ buffers }: Program, rowCount: number): TableRows {
  const numbers = createNumbering();
  const reads = createRows(rowCount);
  const writes = createRows(rowCount);
  /** By region: the last row that reads it. */
  const readIn: number[] = [];
  let row = 0;
  return {
    // Two operands with the same region count as one read. Two writes of one region are a separate mistake.
    read: (region) => {
      const number = regionBytes(region) > 0 ? numbers.of(region) : -1;
      if (number < 0 || readIn[number] === row) return;
      readIn[number] = row;
      reads.add(number);
    },
    write: (region) => {
      if (regionBytes(region) > 0) writes.add(numbers.of(region));
    },
    close: () => {
      row++;
      reads.close();
      writes.close();
    },
    finish: (some) => {
      const shares = sharingBuffers(buffers, some);
      for (const buffer of some) if (shares[buffer.id] === 1) numbers.of(wholeBuffer(buffer));
      const { regions } = numbers;
      return {
        regions,
        sizes: Float64Array.from(regions, regionBytes),
        buffer: Int32Array.from(regions, ({ buffer }) => buffer),
        reads: reads.finish(),
        writes: writes.finish(),
        whole: wholeRegions(regions, buffers),
        ...overlapsOf(regions),
      };
    },
  };
}

function wholeRegions(regions: readonly Region[], buffers: readonly PlacedBuffer[]): Int32Array {
  const whole = new Int32Array(buffers.length).fill(-1);
  for (const [region, { buffer, offset, dims, bytes }] of regions.entries()) {
    if (offset === 0 && dims.length === 0 && bytes === at(buffers, buffer).bytes) whole[buffer] = region;
  }
  return whole;
}

export function wholeBuffer({ id, bytes }: PlacedBuffer): Region {
  return canonicalRegion(id, 0, [], bytes);
}

interface Numbering {
  readonly regions: readonly Region[];
  readonly of: (region: Region) => number;
}

/** Equal regions get the same number. */
function createNumbering(): Numbering {
  const regions: Region[] = [];
  const byBuffer = new Map<number, Map<number, number[]>>();
  return {
    regions,
    of: (region) => {
      const places = byBuffer.get(region.buffer) ?? new Map<number, number[]>();
      byBuffer.set(region.buffer, places);
      const candidates = places.get(region.offset);
      if (candidates === undefined) {
        places.set(region.offset, [regions.length]);
        return regions.push(region) - 1;
      }
      for (const id of candidates) if (sameRegionRuns(at(regions, id), region)) return id;
      candidates.push(regions.length);
      return regions.push(region) - 1;
    },
  };
}

export function sameRegionRuns(a: Region, b: Region): boolean {
  if (a.bytes !== b.bytes || a.dims.length !== b.dims.length) return false;
  for (let i = 0; i < a.dims.length; i++) {
    const [x, y] = [at(a.dims, i), at(b.dims, i)];
    if (x.count !== y.count || x.stride !== y.stride) return false;
  }
  return true;
}

/*
 * Buffers that callers bind, and buffers that share bytes: temporaries that `link` placed in the same memory at
 * different times.
 */

/** By buffer, of those of `some` ranks: whether another buffer shares some of its bytes. */
export function sharingBuffers(buffers: readonly PlacedBuffer[], some = buffers): Uint8Array {
  const shares = new Uint8Array(buffers.length);
  for (const arena of groupedBy(some, arenaOf).values()) {
    let widest: PlacedBuffer | null = null;
    for (const buffer of arena.toSorted((a, b) => a.offset - b.offset || a.id - b.id)) {
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

interface Overlaps {
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
  for (const [region, extent] of regions.entries()) add(region, region, regionBytes(extent));
  for (const [i, count] of bytes.entries()) {
    add(at(ones, i), at(others, i), count);
    add(at(others, i), at(ones, i), count);
  }
  return { overlaps: { start, values }, shared };
}
