/**
 * The memory accesses of a Program's commands, by arena. Buffers that share bytes of an arena conflict here too, so a
 * rewrite that keeps the order of conflicting commands also keeps lifetimes apart.
 */
import { accessesOf } from "../../commands/accesses.ts";
import type { Arena, BufferId, PlacedBuffer } from "../../commands/buffer.ts";
import type { Command, KernelId } from "../../commands/command.ts";
import type { Kernel } from "../../commands/kernel.ts";
import { bufferAlignment } from "../../commands/link/memory/memory-layout.ts";
import type { Program } from "../../commands/program.ts";
import type { Region } from "../../commands/region.ts";
import { elementCount } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { regionsMeet, type Runs, runsOf } from "./regions-meet.ts";

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];

export interface Touch extends Runs {
  /** The rank that owns the memory. */
  readonly rank: number;
  /** A number for each arena of each rank. */
  readonly place: number;
  readonly writes: boolean;
}

export interface Memory {
  /** The Program's buffers and those that rewrites add. */
  readonly buffers: Program["buffers"];
  /** The Program's kernels and those that rewrites add. */
  readonly kernels: readonly Kernel[];
  /** The id of a kernel. A new kernel is added. */
  readonly kernelId: (kernel: Kernel) => KernelId;
  readonly touches: (command: Command) => readonly Touch[];
  /** A new contiguous temporary of a rank. It shares bytes with no other buffer. */
  readonly addTemporary: (rank: number, tensor: Pick<PlacedBuffer, "dtype" | "shape" | "name">) => BufferId;
  /** Bytes of a rank's arena of temporaries. */
  readonly temporaryBytes: (rank: number) => number;
}

export function createMemory({ ranks, buffers: placed, kernels: given }: Program): Memory {
  const [kernels, buffers] = [[...given], [...placed]];
  const temporaryBytes = ranks.map(({ arenaBytes }) => arenaBytes.temporary);
  const known = new Map(kernels.map((kernel, id) => [JSON.stringify(kernel), makeId<KernelId>(id)]));
  const operands = { buffers, kernels };
  const touched = new WeakMap<Command, readonly Touch[]>();
  const touch = (region: Region, writes: boolean): Touch => {
    const { rank, arena, offset } = at(buffers, region.buffer);
    return {
      ...runsOf(offset + region.offset, region.dims, region.bytes),
      rank,
      place: rank * arenas.length + arenas.indexOf(arena),
      writes,
    };
  };
  return {
    buffers,
    kernels,
    kernelId: (kernel) => {
      const key = JSON.stringify(kernel);
      const id = known.get(key) ?? makeId<KernelId>(kernels.push(kernel) - 1);
      known.set(key, id);
      return id;
    },
    touches: (command) => {
      const found = touched.get(command);
      if (found !== undefined) return found;
      const { reads, writes } = accessesOf(command, operands);
      const all = [...reads.map((region) => touch(region, false)), ...writes.map((region) => touch(region, true))];
      touched.set(command, all);
      return all;
    },
    addTemporary: (rank, { dtype, shape, name }) => {
      const id = makeId<BufferId>(buffers.length);
      const bytes = elementCount(shape) * dtypes[dtype].bytes;
      const offset = at(temporaryBytes, rank);
      temporaryBytes[rank] = offset + Math.ceil(bytes / bufferAlignment) * bufferAlignment;
      const place = { rank, arena: "temporary", offset } as const;
      buffers.push({ id, role: "temporary", ...place, bytes, dtype, shape, name, position: null });
      return id;
    },
    temporaryBytes: (rank) => at(temporaryBytes, rank),
  };
}

export function touchesMeet(a: Touch, b: Touch): boolean {
  return a.place === b.place && regionsMeet(a, b);
}

/** Whether both are the same bytes in the same nesting. False if two nestings of one set of bytes differ. */
export function sameBytes(a: Touch, b: Touch): boolean {
  if (a.place !== b.place || a.start !== b.start || a.end !== b.end || a.bytes !== b.bytes) return false;
  return JSON.stringify(a.dims) === JSON.stringify(b.dims);
}

/** Whether two commands share a byte that one of them writes, so that their order matters. */
export function conflict(a: readonly Touch[], b: readonly Touch[]): boolean {
  return a.some((one) => b.some((other) => (one.writes || other.writes) && touchesMeet(one, other)));
}
