/**
 * Buffers that callers bind, and buffers that share bytes: temporaries that `link` placed in the same memory at
 * different times.
 */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";

/** By buffer: whether another buffer shares some of its bytes. */
export function sharingBuffers(buffers: readonly PlacedBuffer[]): Uint8Array {
  const shares = new Uint8Array(buffers.length);
  for (const arena of byArena(buffers).values()) {
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
    const others = arenas.get(arenaOf(buffer));
    if (others === undefined) arenas.set(arenaOf(buffer), [buffer]);
    else others.push(buffer);
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
    if (buffer.role === "output") at(outputs, buffer.rank).push(buffer);
  }
  return { inputs, outputs };
}
