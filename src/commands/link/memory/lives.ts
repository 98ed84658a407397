/**
 * When each temporary of a rank has its bytes: from its first alloc to its last free, in positions of the list, among the temporaries
 * that may take turns with it. Two lives of one group may share bytes if they do not overlap; those of different groups never share.
 *
 * A group is an arena and a stream. A buffer that is freed on another stream than it was allocated on belongs to one of the two: to
 * that of its alloc, from then on for good, if bytes lay idle there; else to that of its free, from the start of the list. So all buffers
 * that take turns with the same bytes are apart pairwise, not only each from the next.
 *
 * For temporaries that peers access too: a program frees one behind the Wait that says that they are done, or the free itself is the race.
 */
import { at } from "../../../support/invariant.ts";
import type { Arena, BufferId } from "../../buffer.ts";
import type { CommandList } from "../../command-list.ts";

export interface Life {
  readonly buffer: BufferId;
  /** The position of its alloc; -Infinity where nobody may have the bytes before. */
  readonly from: number;
  /** The position of its free; Infinity where nobody may have the bytes after. */
  readonly to: number;
}

export interface LifeGroup {
  readonly arena: Arena;
  /** In order of `from`. */
  readonly lives: readonly Life[];
}

interface OpenGroup {
  readonly arena: Arena;
  readonly lives: Life[];
  /** How many buffers of one size could lie in bytes that others have left. */
  idle: number;
}

/** `arenas`: of each buffer of the list. Temporaries without an alloc are in no group. Groups are in order of their first alloc. */
export function livesOf(list: CommandList, arenas: readonly Arena[]): readonly LifeGroup[] {
  const groups = new Map<string, OpenGroup>();
  const groupOf = (buffer: BufferId, stream: number): OpenGroup => {
    const arena = at(arenas, buffer);
    const key = `${arena} ${stream}`;
    const known = groups.get(key) ?? { arena, lives: [], idle: 0 };
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
  return [...groups.values()].map(({ arena, lives }) => ({ arena, lives: lives.toSorted((a, b) => before(a, b)) }));
}

function before(a: Life, b: Life): number {
  // Infinity - Infinity is NaN.
  return a.from === b.from ? 0 : a.from - b.from;
}

interface LastFree {
  readonly index: number;
  readonly stream: number;
}

/** The free behind which no alloc of the same buffer stands. */
function lastFreesOf({ commands }: CommandList): ReadonlyMap<BufferId, LastFree> {
  const last = new Map<BufferId, LastFree>();
  for (const [index, command] of commands.entries()) {
    if (command.kind === "alloc") last.delete(command.buffer);
    if (command.kind === "free") last.set(command.buffer, { index, stream: command.stream });
  }
  return last;
}
