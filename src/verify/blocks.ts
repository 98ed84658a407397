/**
 * Which buffers have bytes in common: temporaries to which link gave one place, one after the other. A block is a set of buffers of
 * one rank and arena whose bytes join; most are of one buffer.
 */
import type { PlacedBuffer } from "../commands/buffer.ts";
import { at } from "../support/invariant.ts";

export interface Blocks {
  readonly count: number;
  /** By buffer. */
  readonly blockOf: Int32Array;
  /** By buffer: the others that have some of its bytes. Buffers that are alone have no entry. */
  readonly siblings: ReadonlyMap<number, readonly number[]>;
}

export function blocksOf(buffers: readonly PlacedBuffer[]): Blocks {
  const blockOf = new Int32Array(buffers.length);
  const siblings = new Map<number, number[]>();
  const byArena = new Map<string, PlacedBuffer[]>();
  for (const buffer of buffers) {
    const key = `${buffer.rank} ${buffer.arena}`;
    const others = byArena.get(key);
    if (others === undefined) byArena.set(key, [buffer]);
    else others.push(buffer);
  }
  let count = 0;
  for (const arena of byArena.values()) {
    arena.sort((a, b) => a.offset - b.offset || a.id - b.id);
    let end = -1;
    let members: PlacedBuffer[] = [];
    for (const buffer of arena) {
      if (buffer.offset >= end || buffer.bytes === 0) {
        count++;
        members = [];
      }
      blockOf[buffer.id] = count - 1;
      for (const other of members) {
        if (other.offset + other.bytes <= buffer.offset) continue;
        join(siblings, buffer.id, other.id);
        join(siblings, other.id, buffer.id);
      }
      members.push(buffer);
      end = Math.max(end, buffer.offset + buffer.bytes);
    }
  }
  return { count, blockOf, siblings };
}

function join(siblings: Map<number, number[]>, buffer: number, other: number): void {
  const known = siblings.get(buffer);
  if (known === undefined) siblings.set(buffer, [other]);
  else known.push(other);
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
    if (buffer.role === "output") at(outputs, buffer.rank).push(buffer);
  }
  return { inputs, outputs };
}
