/**
 * Gives every buffer of a rank a place in its arena. Only temporaries share bytes, and only where the free of one stands before the
 * alloc of the other on the same stream: in-order streams then keep their uses apart without further proof. For temporaries that peers
 * access too: a program frees one behind the Wait that says that they are done, or the free itself is the race.
 */
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import type { Arena, Buffer, BufferId, PlacedBuffer } from "../buffer.ts";
import type { CommandList } from "../command.ts";

/** The start of every buffer is a multiple of this, for vector loads and for what CUDA's libraries ask of addresses. */
export const bufferAlignment = 256;

export interface RankLayout {
  /** In order of the rank's ids; `id` counts over all ranks. */
  readonly buffers: readonly PlacedBuffer[];
  readonly arenaBytes: { readonly [A in Arena]: number };
}

/**
 * `firstId`: the id of the list's buffer 0. Buffers in `peerVisible` (ids of the list) are placed in the symmetric arena.
 * A temporary that is allocated more than once keeps its place from its first alloc to its last free.
 */
export function layOutRank(list: CommandList, firstId: number, peerVisible: ReadonlySet<BufferId>): RankLayout {
  const arenaBytes: { [A in Arena]: number } = { input: 0, output: 0, temporary: 0, symmetric: 0 };
  const arenas = list.buffers.map((buffer): Arena => (peerVisible.has(buffer.id) ? "symmetric" : buffer.arena));
  const offsets = new Map<BufferId, number>();
  const append = (buffer: Buffer): number => {
    const arena = at(arenas, buffer.id);
    const offset = arenaBytes[arena];
    arenaBytes[arena] += aligned(buffer.bytes);
    return offset;
  };
  const lastMark = lastMarks(list);
  const freeBlocks = new Map<string, Block[]>();
  // Bytes that others had before stay with their stream: all of their buffers must then be apart pairwise.
  const reused = new Set<BufferId>();
  const allocStream = new Map<BufferId, number>();
  for (const [index, command] of list.commands.entries()) {
    if (command.kind !== "alloc" && command.kind !== "free") continue;
    const buffer = at(list.buffers, command.buffer);
    if (buffer.role !== "temporary") continue;
    const key = `${at(arenas, buffer.id)} ${command.stream}`;
    const free = freeBlocks.get(key) ?? [];
    freeBlocks.set(key, free);
    const offset = offsets.get(buffer.id);
    if (command.kind === "alloc" && offset === undefined) {
      const taken = takeFirstFit(free, aligned(buffer.bytes));
      if (taken !== null) reused.add(buffer.id);
      offsets.set(buffer.id, taken ?? append(buffer));
      allocStream.set(buffer.id, command.stream);
    } else if (command.kind === "free" && offset !== undefined && lastMark.get(buffer.id) === index) {
      const mayMove = !reused.has(buffer.id);
      if (mayMove || allocStream.get(buffer.id) === command.stream) {
        give(free, { offset, bytes: aligned(buffer.bytes) });
      }
    }
  }
  const buffers = list.buffers.map((buffer): PlacedBuffer => ({
    ...buffer,
    id: makeId<BufferId>(firstId + buffer.id),
    arena: at(arenas, buffer.id),
    rank: list.rank,
    offset: offsets.get(buffer.id) ?? append(buffer),
  }));
  return { buffers, arenaBytes };
}

interface Block {
  readonly offset: number;
  readonly bytes: number;
}

/** The last alloc or free of every buffer. */
function lastMarks({ commands }: CommandList): ReadonlyMap<BufferId, number> {
  const last = new Map<BufferId, number>();
  for (const [index, command] of commands.entries()) {
    if (command.kind === "alloc" || command.kind === "free") last.set(command.buffer, index);
  }
  return last;
}

/** Takes `bytes` from the lowest block that holds them; null if none does. `free` is sorted by offset. */
function takeFirstFit(free: Block[], bytes: number): number | null {
  const index = free.findIndex((block) => block.bytes >= bytes);
  const block = free[index];
  if (block === undefined) return null;
  const rest = { offset: block.offset + bytes, bytes: block.bytes - bytes };
  free.splice(index, 1, ...(rest.bytes > 0 ? [rest] : []));
  return block.offset;
}

/** Puts a block back, joined with the free blocks on either side of it. */
function give(free: Block[], block: Block): void {
  if (block.bytes === 0) return;
  const found = free.findIndex(({ offset }) => offset > block.offset);
  const index = found === -1 ? free.length : found;
  const before = free[index - 1];
  const after = free[index];
  const joinsBefore = before !== undefined && before.offset + before.bytes === block.offset;
  const joinsAfter = after !== undefined && block.offset + block.bytes === after.offset;
  const offset = joinsBefore ? before.offset : block.offset;
  const end = joinsAfter ? after.offset + after.bytes : block.offset + block.bytes;
  free.splice(index - (joinsBefore ? 1 : 0), (joinsBefore ? 1 : 0) + (joinsAfter ? 1 : 0), {
    offset,
    bytes: end - offset,
  });
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / bufferAlignment) * bufferAlignment;
}
