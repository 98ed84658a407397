/**
 * Every distinct region that a Program's commands and callers touch, numbered; per node which regions it reads and
 * writes; and per region which others share bytes with it (blocks.ts).
 */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import { type CommandKind, isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { accesses, canonicalRegion, type Region } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import type { Graph } from "../order/graph.ts";
import { createRows, type ClockRows } from "../order/known.ts";
import { boundBuffers, type Overlaps, overlapsOf, sharingBuffers } from "./blocks.ts";
import { sizeOf } from "./shared-bytes.ts";

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
      const number = sizeOf(region) > 0 ? numbers.of(region) : -1;
      if (number < 0 || readIn[number] === row) return;
      readIn[number] = row;
      reads.add(number);
    },
    write: (region) => {
      if (sizeOf(region) > 0) writes.add(numbers.of(region));
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
        sizes: Float64Array.from(regions, sizeOf),
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
