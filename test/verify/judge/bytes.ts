/** Memory, byte by byte: a stamp for every byte of every arena, and the commands' accesses as ranges of it. */
import { at } from "../../../src/support/invariant.ts";
import type { Arena } from "../../../src/commands/buffer.ts";
import type { Program } from "../../../src/commands/program.ts";
import type { Region } from "../../../src/commands/region.ts";

/** Ranges of addresses: start, end, start, end, ... */
export type Ranges = readonly number[];

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];

export interface Memory {
  /** Of all arenas of all ranks. */
  readonly bytes: number;
  ranges(regions: readonly Region[]): Ranges;
  /** The bytes of a buffer. */
  buffer(id: number): readonly [number, number];
}

/** Addresses of a Program's bytes: arena after arena, rank after rank. */
export function createMemory(program: Program): Memory {
  const bases = new Map<string, number>();
  let next = 0;
  for (const { rank, arenaBytes } of program.ranks) {
    for (const arena of arenas) {
      bases.set(`${rank} ${arena}`, next);
      next += arenaBytes[arena];
    }
  }
  const start = program.buffers.map(({ rank, arena, offset }) => (bases.get(`${rank} ${arena}`) ?? 0) + offset);
  return {
    bytes: next,
    buffer: (id) => [at(start, id), at(start, id) + at(program.buffers, id).bytes],
    ranges: (regions) => {
      const ranges: number[] = [];
      for (const { buffer, offset, dims, bytes } of regions) {
        const walk = (depth: number, address: number): void => {
          const dim = dims[depth];
          if (dim === undefined) {
            ranges.push(address, address + bytes);
            return;
          }
          for (let i = 0; i < dim.count; i++) walk(depth + 1, address + i * dim.stride);
        };
        walk(0, at(start, buffer) + offset);
      }
      return ranges;
    },
  };
}

export function fill(memory: Uint8Array, ranges: Ranges, value: number): void {
  for (let i = 0; i < ranges.length; i += 2) memory.fill(value, ranges[i], ranges[i + 1]);
}

/** Whether some byte of the ranges satisfies the test. */
export function some(memory: Uint8Array, ranges: Ranges, test: (value: number) => boolean): boolean {
  for (let i = 0; i < ranges.length; i += 2) {
    for (let address = at(ranges, i); address < at(ranges, i + 1); address++)
      if (test(at(memory, address))) return true;
  }
  return false;
}
