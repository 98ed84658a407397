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
import { getOrMake } from "../../../support/lists.ts";

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
    const known = getOrMake(groups, key, () => ({ arena, stream, lives: [], idle: 0 }));
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
function inOrder<T extends { readonly from: number }>(lives: readonly T[]): readonly T[] {
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

// Lives of the groups of `livesOf`, in which what another stream does between two meetings with the caller's stream is
// one life of the caller's group:
//
//   caller:  record e ................................. wait f
//   worker:           wait e   alloc .. free   record f
//
// The buffers of such a stay are stacked among themselves. The stack shares bytes with what the caller's stream frees
// before e is recorded or allocates after it has waited for f, for example with the buffers of other loops. A stay ends
// where none of its buffers is alive and the worker next waits for the caller's stream.

/** The lives of one stream from a wait for the caller's stream until that waits for them. */
export interface Stay {
  /** In order of `from`. */
  readonly lives: readonly Life[];
  /** The position at which the caller's stream records the event that the stream waits for first. */
  readonly from: number;
  /** The position at which the caller's stream waits for the last free. */
  readonly to: number;
}

interface NestedGroup {
  readonly arena: Arena;
  /** In order of `from`. */
  readonly lives: readonly (Life | Stay)[];
}

const caller = 0;

export function nestStays(list: CommandList, groups: readonly LifeGroup[]): readonly NestedGroup[] {
  if (groups.every(({ stream }) => stream === caller)) return groups;
  const meetings = meetingsOf(list);
  const staysOf = new Map<Arena, Stay[]>();
  const rest = groups.map((group): LifeGroup => {
    if (group.stream === caller) return group;
    const { stays, others } = splitStays(group.lives, meetings.get(group.stream) ?? { enters: [], leaves: [] });
    staysOf.set(group.arena, [...(staysOf.get(group.arena) ?? []), ...stays]);
    return { ...group, lives: others };
  });
  const callers = new Set(rest.flatMap(({ arena, stream }) => (stream === caller ? [arena] : [])));
  return [
    ...rest.map(({ arena, stream, lives }): NestedGroup => ({
      arena,
      lives: stream === caller ? inOrder([...lives, ...(staysOf.get(arena) ?? [])]) : lives,
    })),
    ...[...staysOf].flatMap(([arena, stays]): readonly NestedGroup[] =>
      callers.has(arena) ? [] : [{ arena, lives: inOrder(stays) }],
    ),
  ].filter(({ lives }) => lives.length > 0);
}

/** A wait on one of two streams, one of them the caller's, for an event that the other has recorded. */
interface Meeting {
  readonly recorded: number;
  readonly waited: number;
}

interface Meetings {
  /** Waits for the caller's stream, in order of `waited`. */
  readonly enters: Meeting[];
  /** Waits of the caller's stream, in order of `waited`. */
  readonly leaves: Meeting[];
}

/** By stream. */
function meetingsOf({ commands }: CommandList): ReadonlyMap<number, Meetings> {
  const meetings = new Map<number, Meetings>();
  const of = (stream: number): Meetings => {
    const known = getOrMake(meetings, stream, () => ({ enters: [], leaves: [] }));
    return known;
  };
  const recorded = new Map<number, { readonly position: number; readonly stream: number }>();
  for (const [waited, command] of commands.entries()) {
    if (command.kind === "recordEvent") recorded.set(command.event, { position: waited, stream: command.stream });
    if (command.kind !== "waitEvent") continue;
    const record = recorded.get(command.event);
    if (record === undefined || record.stream === command.stream) continue;
    if (record.stream === caller) of(command.stream).enters.push({ recorded: record.position, waited });
    else if (command.stream === caller) of(record.stream).leaves.push({ recorded: record.position, waited });
  }
  return meetings;
}

interface Split {
  readonly stays: readonly Stay[];
  /** Lives that the caller's stream does not enclose, in order of `from`. */
  readonly others: readonly Life[];
}

/** `lives` are in order of `from`. */
function splitStays(lives: readonly Life[], { enters, leaves }: Meetings): Split {
  const stays: Stay[] = [];
  const others: Life[] = [];
  let open: { readonly from: number; readonly lives: Life[]; to: number } | null = null;
  const close = (): void => {
    if (open === null) return;
    const { lives: own, to, from } = open;
    const left = leaves.find(({ recorded }) => recorded > to);
    if (left === undefined) others.push(...own);
    else stays.push({ lives: own, from, to: left.waited });
    open = null;
  };
  let entered = 0;
  for (const life of lives) {
    let enter: Meeting | null = null;
    for (; entered < enters.length && at(enters, entered).waited < life.from; entered++) enter = at(enters, entered);
    if (enter !== null && (open === null || open.to < enter.waited)) {
      close();
      open = { from: enter.recorded, lives: [], to: -Infinity };
    }
    if (open === null) others.push(life);
    else {
      open.lives.push(life);
      open.to = Math.max(open.to, life.to);
    }
  }
  close();
  return { stays, others };
}
