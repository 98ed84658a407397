/**
 * The time during which each temporary of a rank has its bytes: from its first alloc to its last free, as positions in
 * the list. Lives are grouped. Two lives of one group may share bytes if they do not overlap; lives of different groups
 * never do.
 *
 * A group is an arena and a stream. A buffer with its free on another stream than its alloc could belong to either
 * group. If bytes are idle in the group of its alloc, it belongs there and keeps them for good; otherwise it belongs to
 * the group of its free and has its bytes from the start of the list. Either way, all buffers that use the same bytes
 * in turn are ordered pairwise, not only each with the next.
 *
 * This holds for temporaries that peers access, too: a program frees one after the Wait for its peers' done signals, or
 * the free itself is the race.
 */
import { at } from "../../../support/invariant.ts";
import type { Arena, BufferId } from "../../buffer.ts";
import type { CommandList } from "../../command-list.ts";

export interface Life {
  readonly buffer: BufferId;
  /** The position of its alloc; -Infinity if no other life may use the bytes before. */
  readonly from: number;
  /** The position of its free; Infinity if no other life may use the bytes after. */
  readonly to: number;
}

export interface LifeGroup {
  readonly arena: Arena;
  readonly stream: number;
  /** In order of `from`. */
  readonly lives: readonly Life[];
}

interface OpenGroup {
  readonly arena: Arena;
  readonly stream: number;
  readonly lives: Life[];
  /** The number of ended lives with bytes that no later life has taken. */
  idle: number;
}

/**
 * `arenas[b]` is the arena of buffer b. Temporaries without an alloc are in no group. Groups are in order of their
 * first alloc.
 */
export function livesOf(list: CommandList, arenas: readonly Arena[]): readonly LifeGroup[] {
  const groups = new Map<string, OpenGroup>();
  const groupOf = (buffer: BufferId, stream: number): OpenGroup => {
    const arena = at(arenas, buffer);
    const key = `${arena} ${stream}`;
    const known = groups.get(key) ?? { arena, stream, lives: [], idle: 0 };
    groups.set(key, known);
    return known;
  };
  const lastFrees = lastFreesOf(list);
  const started = new Set<BufferId>();
  const endsAt = new Map<number, OpenGroup>();
  for (const [from, command] of list.commands.entries()) {
    if (command.kind === "free") {
      const ended = endsAt.get(from);
      if (ended !== undefined) ended.idle++;
    }
    if (command.kind !== "alloc" || started.has(command.buffer)) continue;
    const { buffer, stream } = command;
    if (at(list.buffers, buffer).role !== "temporary") continue;
    started.add(buffer);
    const own = groupOf(buffer, stream);
    const free = lastFrees.get(buffer);
    const moves = free !== undefined && free.stream !== stream;
    const life: Life =
      free === undefined || (moves && own.idle > 0)
        ? { buffer, from, to: Infinity }
        : { buffer, from: moves ? -Infinity : from, to: free.index };
    const group = free !== undefined && moves && own.idle === 0 ? groupOf(buffer, free.stream) : own;
    if (life.from === from && group.idle > 0) group.idle--;
    group.lives.push(life);
    if (life.to !== Infinity) endsAt.set(life.to, group);
  }
  return [...groups.values()].map(({ arena, stream, lives }) => ({ arena, stream, lives: inOrder(lives) }));
}

/** In order of `from`. */
export function inOrder<T extends { readonly from: number }>(lives: readonly T[]): readonly T[] {
  // Infinity - Infinity is NaN.
  return lives.toSorted((a, b) => (a.from === b.from ? 0 : a.from - b.from));
}

interface LastFree {
  readonly index: number;
  readonly stream: number;
}

/** Frees that no alloc of the same buffer follows. */
function lastFreesOf({ commands }: CommandList): ReadonlyMap<BufferId, LastFree> {
  const last = new Map<BufferId, LastFree>();
  for (const [index, command] of commands.entries()) {
    if (command.kind === "alloc") last.delete(command.buffer);
    if (command.kind === "free") last.set(command.buffer, { index, stream: command.stream });
  }
  return last;
}
