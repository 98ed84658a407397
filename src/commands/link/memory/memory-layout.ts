/**
 * Places every buffer of a rank in its arena. Only temporaries share bytes, and only if the free of one comes before
 * the alloc of the other on the same stream (lives.ts), or through the caller's stream.
 *
 * The temporaries of one arena and stream are placed together, in the lowest of several stacks (stack-lives.ts). The
 * order of allocs and frees alone determines which stacks are tried, so smaller buffers with the same lives never need
 * a larger arena.
 */
import { fail } from "../../../diagnostics/diagnostic.ts";
import { makeId, at, getOrMake } from "../../../support/invariant.ts";
import { repeatsOf } from "../../../support/repeats.ts";
import type { Arena, BufferId, PlacedBuffer } from "../../buffer.ts";
import type { CommandList, UnlinkedCommand } from "../../command-list.ts";
import { stackLives } from "./stack-lives.ts";

/** Every buffer starts at a multiple of this, for vector loads and for CUDA's libraries. */
export const bufferAlignment = 256;
/** Commands that repeats leave out, at least: fewer are no layers. */
const leastRepeated = 16;

export interface RankLayout {
  /** In order of the rank's ids; `id` counts over all ranks. */
  readonly buffers: readonly PlacedBuffer[];
  readonly arenaBytes: { readonly [A in Arena]: number };
}

/**
 * The layouts of all lists. `firstIds[i]` is the id of buffer 0 of list i. Buffers in `peerVisible[i]` (ids of the list)
 * go to the symmetric arena. A temporary that is allocated more than once keeps its place from its first alloc to its
 * last free. Lists of one class mostly have one layout, which is made once.
 */
export function layOutRanks(
  lists: readonly CommandList[],
  firstIds: readonly number[],
  peerVisible: readonly ReadonlySet<BufferId>[],
): readonly RankLayout[] {
  const known = new Map<
    CommandList["buffers"],
    { readonly list: CommandList; readonly visible: string; readonly places: Places }
  >();
  return lists.map((list, i) => {
    const own = at(peerVisible, i);
    const visible = [...own].sort((a, b) => a - b).join(" ");
    const alike = known.get(list.buffers);
    const isKnown = alike !== undefined && alike.visible === visible && ordersMemoryAlike(alike.list, list);
    const places = isKnown ? alike.places : placesOf(list, own);
    if (!isKnown) known.set(list.buffers, { list, visible, places });
    const { arenas, offsets, arenaBytes } = places;
    const { rank } = list;
    const first = at(firstIds, i);
    const buffers = list.buffers.map((buffer, number): PlacedBuffer => ({
      // What is new stands first: after the spread, V8 takes ten times as long, and there are millions of buffers.
      rank,
      offset: at(offsets, number),
      ...buffer,
      id: makeId<BufferId>(first + buffer.id),
      arena: at(arenas, number),
    }));
    return { buffers, arenaBytes };
  });
}

/** Whether two lists of the same buffers agree in all that a layout depends on. Those recorded at once share it. */
function ordersMemoryAlike(a: CommandList, b: CommandList): boolean {
  const areEqual = (own: UnlinkedCommand, other: UnlinkedCommand | undefined): boolean =>
    own === other || (other !== undefined && !ordersMemory(own) && !ordersMemory(other));
  return a.commands.length === b.commands.length && a.commands.every((own, i) => areEqual(own, b.commands[i]));
}

function ordersMemory({ kind }: UnlinkedCommand): boolean {
  return kind === "alloc" || kind === "free" || kind === "recordEvent" || kind === "waitEvent";
}

/** Where the buffers of a list lie, by their ids in the list. */
interface Places {
  readonly arenas: readonly Arena[];
  readonly offsets: readonly number[];
  readonly arenaBytes: RankLayout["arenaBytes"];
}

function placesOf(list: CommandList, peerVisible: ReadonlySet<BufferId>): Places {
  const arenaBytes: { [A in Arena]: number } = { input: 0, output: 0, temporary: 0, symmetric: 0 };
  const arenas = list.buffers.map((buffer): Arena => (peerVisible.has(buffer.id) ? "symmetric" : buffer.arena));
  const placed = new Map<BufferId, number>();
  const reserve = (arena: Arena, bytes: number): number => {
    const offset = arenaBytes[arena];
    arenaBytes[arena] += bytes;
    return offset;
  };
  const classOf = classesOf(list);
  for (const { arena, lives } of nestStays(list, livesOf(list, arenas))) {
    const { bytes, place } = stackOf(list, lives, classOf);
    place(reserve(arena, bytes), placed);
  }
  const offsets = list.buffers.map(({ id, bytes }) => placed.get(id) ?? reserve(at(arenas, id), aligned(bytes)));
  if (!arenas.every((arena) => Number.isSafeInteger(arenaBytes[arena]))) tooLarge(list);
  return { arenas, offsets, arenaBytes };
}

/** Offsets and sizes are exact up to 2^53. */
function tooLarge({ rank, buffers }: CommandList): never {
  const { name, dtype, shape } = at(
    buffers.toSorted((a, b) => b.bytes - a.bytes),
    0,
  );
  return fail("bad-extent", "the tensors are too large", {
    place: { kind: "option", text: "sizes (--set, --sizes)" },
    found: `${name}, ${dtype} [${shape.join(", ")}], on rank ${rank}`,
    expected: "at most 2^53 - 1 bytes for all tensors of a rank",
    help: "choose smaller sizes",
  });
}

interface Placement {
  readonly bytes: number;
  /** Places the buffers from `start` on. */
  readonly place: (start: number, offsets: Map<BufferId, number>) => void;
}

/**
 * By position in the list. Positions of one class are those of one command in layers, chunks and other repeats. Lists
 * that order memory alike have the same classes.
 */
function classesOf({ commands }: CommandList): (position: number) => number {
  const positions = [...commands.keys()].filter((position) => ordersMemory(at(commands, position)));
  const shapes = new Map<string, number>();
  const items = positions.map((position) => {
    const { kind, stream } = at(commands, position);
    return getOrMake(shapes, `${kind} ${stream}`, () => shapes.size);
  });
  const classes = Int32Array.from(commands.keys());
  for (const { start, period, times } of repeatsOf(items, leastRepeated)) {
    for (let i = period; i < period * times; i++)
      classes[at(positions, start + i)] = at(positions, start + (i % period));
  }
  return (position) => at(classes, position);
}

function stackOf(list: CommandList, lives: readonly (Life | Stay)[], classOf: (position: number) => number): Placement {
  const own = lives.map((life): Placement => {
    if ("lives" in life) return stackOf(list, life.lives, classOf);
    const { buffer } = life;
    return {
      bytes: aligned(at(list.buffers, buffer).bytes),
      place: (start, offsets) => void offsets.set(buffer, start),
    };
  });
  const stack = stackLives(
    lives,
    own.map(({ bytes }) => bytes),
    lives.map(({ from }, i) => (Number.isFinite(from) ? classOf(from) : -1 - i)),
  );
  return {
    bytes: stack.bytes,
    place: (start, offsets) => {
      for (const [i, { place }] of own.entries()) place(start + at(stack.offsets, i), offsets);
    },
  };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / bufferAlignment) * bufferAlignment;
}

/*
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

interface Life {
  readonly buffer: BufferId;
  /** The position of its alloc; -Infinity if no other life may use the bytes before. */
  readonly from: number;
  /** The position of its free; Infinity if no other life may use the bytes after. */
  readonly to: number;
}

interface LifeGroup {
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
function livesOf(list: CommandList, arenas: readonly Arena[]): readonly LifeGroup[] {
  const groups = new Map<string, OpenGroup>();
  const groupOf = (buffer: BufferId, stream: number): OpenGroup => {
    const arena = at(arenas, buffer);
    const key = `${arena} ${stream}`;
    return getOrMake(groups, key, () => ({ arena, stream, lives: [], idle: 0 }));
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
interface Stay {
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

function nestStays(list: CommandList, groups: readonly LifeGroup[]): readonly NestedGroup[] {
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
  const of = (stream: number): Meetings => getOrMake(meetings, stream, () => ({ enters: [], leaves: [] }));
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
