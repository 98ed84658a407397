/**
 * Reads the drafts of Programs. It keeps what the Programs of one search have in common: the accesses of commands that
 * only moved, and the drafts of Programs that several rewrites start from.
 */
import type { BufferId } from "../../commands/buffer.ts";
import { type Command, isBlocking, isSignalling, type SlotId } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import { symmetryOf } from "../../verify/classes/prove-classes.ts";
import {
  identityGroup,
  type RankGroup,
  type RankPermutation,
  representativesOf,
} from "../../verify/classes/rank-group.ts";
import type { Draft, DraftNode } from "./draft.ts";
import { type Foreign, foreignTouches } from "./memory/foreign.ts";
import { createDraftMemory, type DraftMemory } from "./memory/memory.ts";
import { createTouchCache, createTouchIndex, type TouchCache, type TouchIndex } from "./memory/touch-index.ts";
import { type Touch, touchesMeet } from "./memory/touch.ts";
import type { ReadDependences } from "./order/known-dependences.ts";
import { listOrder, type ListOrder } from "./order/list-order.ts";
import { createPasts, type Past, type Pasts } from "./order/pasts.ts";
import { type Done, type Guarantee, type Guarantees, signalGuarantees } from "./order/signal-guarantees.ts";

export interface ReadProgram {
  /** One rank of each class. Where the ranks are not alike, all of them. */
  readonly representatives: readonly number[];
  readonly representativeOf: (rank: number) => number;
  /** Of any rank, read when it is asked for. */
  readonly draftOf: (rank: number) => Draft;
  readonly foreign: Foreign;
  readonly dependences: ReadDependences;
  /** For one edit, which may add kernels and buffers. */
  readonly newMemory: () => DraftMemory;
}

export interface DraftReader {
  readonly read: (program: Program) => ReadProgram;
  /** The symmetries by which one rank of each class is edited; null if every rank is. */
  readonly symmetry: (program: Program) => RankGroup | null;
  /** Notes that `made` has the symmetries of the Program that it was made from. */
  readonly keepSymmetry: (made: Program, group: RankGroup) => void;
  /** The buffer of the same number on the rank to which a symmetry takes its rank. */
  readonly bufferImages: (program: Program) => BufferImages;
}

type BufferImages = (buffer: BufferId, element: RankPermutation) => BufferId;

function bufferImages({ ranks, buffers }: Program): BufferImages {
  const byRank = ranks.map((): BufferId[] => []);
  let numbers: readonly number[] | null = null;
  return (buffer, element) => {
    // Few edits move operands.
    numbers ??= buffers.map(({ id, rank }) => at(byRank, rank).push(id) - 1);
    return at(at(byRank, at(element, at(buffers, buffer).rank)), at(numbers, buffer));
  };
}

/** With fewer ranks, editing each takes less time. */
const fewestRanks = 4;

/** Drafts take more memory than their Program. A search comes back to few Programs at a time. */
const mostKept = 4;

/** By Program: what `keepSymmetry` notes. The next rewrite may have another reader. */
const keptGroups = new WeakMap<Program, RankGroup>();

/** `byClass`: whether one rank of each class is edited, where that is possible. */
export function createDraftReader(byClass = true): DraftReader {
  const cache = createTouchCache();
  const kept = new Map<Program, ReadProgram>();
  /** Parts of a Program, and most of what rewrites make of it, have its buffers. */
  const images = new WeakMap<Program["buffers"], BufferImages>();
  const symmetry = (program: Program): RankGroup | null => {
    if (!byClass || program.ranks.length < fewestRanks) return null;
    return keptGroups.get(program) ?? symmetryOf(program);
  };
  return {
    symmetry,
    keepSymmetry: (made, group) => void keptGroups.set(made, group),
    bufferImages: (program) => getOrMake(images, program.buffers, () => bufferImages(program)),
    read: (program) => {
      const found =
        kept.get(program) ?? readProgram(program, symmetry(program) ?? identityGroup(program.ranks.length), cache);
      kept.delete(program);
      kept.set(program, found);
      for (const oldest of kept.keys()) {
        if (kept.size <= mostKept) break;
        kept.delete(oldest);
      }
      return found;
    },
  };
}

function readProgram(program: Program, group: RankGroup, cache: TouchCache): ReadProgram {
  const touched = new Map<Command, readonly Touch[]>();
  const newMemory = (): DraftMemory => createDraftMemory(program, cache, touched);
  const memory = newMemory();
  const foreign = foreignTouches(program, group, memory);
  const orders = new Map<number, ListOrder>();
  const orderOf = (rank: number): ListOrder => getOrMake(orders, rank, () => listOrder(at(program.ranks, rank)));
  const guarantee = signalGuarantees(program, group, orderOf, memory, foreign);
  const known = new Map<number, Draft>();
  const dependences: ReadDependences = new Map();
  const draftOf = (rank: number): Draft => {
    const draft = known.get(rank) ?? readDraft(at(program.ranks, rank), orderOf(rank), memory, { foreign, guarantee });
    if (!known.has(rank)) dependences.set(draft.nodes, null);
    known.set(rank, draft);
    return draft;
  };
  return {
    representatives: representativesOf(group),
    representativeOf: (rank) => at(group.representative, rank),
    draftOf,
    foreign,
    dependences,
    newMemory,
  };
}

// Reads one rank's list into a Draft and drops its events. `sync` and `pasts` keep the part of their order that other
// ranks rely on: the work that a signal reports comes before the signal, and commands that rely on a wait come after
// the wait.
//
// Only commands that another rank can observe matter: those that access a peer's memory, or own memory that peers
// access too, unless both only read. A GEMM that reads data from a copy is not among them.

/** Facts about other ranks that reading a rank's list requires. */
interface Others {
  readonly foreign: Foreign;
  readonly guarantee: Guarantees;
}

function readDraft(list: RankProgram, order: ListOrder, memory: DraftMemory, { foreign, guarantee }: Others): Draft {
  const waits = new Map<SlotId, number>();
  const next = (slot: SlotId): Guarantee | null => {
    const n = waits.get(slot) ?? 0;
    waits.set(slot, n + 1);
    return guarantee(slot, n, list.rank);
  };
  const nodes: DraftNode[] = [];
  /** Whatever other ranks observe, and what waits for them: a signal reports all of it. */
  const observed = createPasts<number>(order);
  /** What waits for other ranks without a known guarantee: an access that they observe comes after all of it. */
  const unknown = createPasts<number>(order);
  const known = createKnownWaits(list.rank, order);
  /** Signals and waits of one slot keep their order. */
  const ofSlot = new Map<SlotId, Pasts<number>>();
  for (const [position, command] of list.commands.entries()) {
    if (command.kind === "recordEvent" || command.kind === "waitEvent") continue;
    const id = nodes.length;
    const touches = memory.touches(command);
    const isSeen = touches.some((touch) => touch.rank !== list.rank) || foreign.conflicts(touches);
    const guaranteed = command.kind === "waitSignal" ? next(command.slot) : null;
    const relies = isSeen && !isBlocking(command) && !isSignalling(command);
    const pasts: (Past | null)[] = [];
    if (isSignalling(command)) pasts.push(observed.before(position));
    if (relies) pasts.push(unknown.before(position));
    if (command.kind === "signal" || command.kind === "waitSignal") {
      const slot = getOrMake(ofSlot, command.slot, () => createPasts<number>(order));
      pasts.push(slot.before(position));
      slot.add(position, id);
    }
    nodes.push({
      id,
      command,
      origin: at(list.origins, position),
      transfer: at(list.transferOf, position),
      sources: [position],
      guarantee: guaranteed,
      sync: relies ? known.before(position, touches) : [],
      pasts: pasts.flatMap((past) => past ?? []),
    });
    if (isSeen || isBlocking(command)) observed.add(position, id);
    if (guaranteed !== null) known.add(position, id, guaranteed);
    else if (isBlocking(command)) unknown.add(position, id);
  }
  return { rank: list.rank, streams: list.streams, nodes };
}

// The waits of a rank whose guarantees are known, by what they guarantee. An access comes after the first wait that
// guarantees each other access which it conflicts with, and after the first wait for each rank whose memory it touches.
// Later waits guarantee nothing more: a signal reports everything that its sender has done, so the second chunk's
// signal also reports that the first chunk has arrived.

interface KnownWaits {
  /** In list order. */
  readonly add: (position: number, id: number, guarantee: Guarantee) => void;
  /** The ids of the waits that the accesses of the command at `position` come after. */
  readonly before: (position: number, touches: readonly Touch[]) => readonly number[];
}

interface Wait {
  readonly position: number;
  readonly id: number;
}

function createKnownWaits(rank: number, order: ListOrder): KnownWaits {
  const byDone = new Map<Done, Wait[]>();
  const doneIn = new Map<number, TouchIndex<Done>>();
  const bySender = new Map<number, Wait[]>();
  /** Only the first wait of each stream: it is before whatever a later one is before. */
  const addFirst = <K>(waits: Map<K, Wait[]>, key: K, wait: Wait): void => {
    const known = waits.get(key);
    const stream = order.streamOf(wait.position);
    if (known === undefined) waits.set(key, [wait]);
    else if (!known.some(({ position }) => order.streamOf(position) === stream)) known.push(wait);
  };
  return {
    add: (position, id, { done, senders }) => {
      for (const each of done) {
        if (!byDone.has(each)) {
          const index = getOrMake(doneIn, each.place, () => createTouchIndex<Done>());
          index.add(each, each);
        }
        addFirst(byDone, each, { position, id });
      }
      for (const sender of senders) addFirst(bySender, sender, { position, id });
    },
    before: (position, touches) => {
      const ids = new Set<number>();
      const addEarliest = (waits: readonly Wait[] = []): void => {
        const first = waits.find((wait) => order.before(wait.position, position));
        if (first !== undefined) ids.add(first.id);
      };
      for (const touch of touches) {
        doneIn.get(touch.place)?.some(touch, (done) => {
          if ((touch.writes || done.writes) && touchesMeet(touch, done)) addEarliest(byDone.get(done));
          return false;
        });
        if (touch.rank !== rank) addEarliest(bySender.get(touch.rank));
      }
      return [...ids].sort((a, b) => a - b);
    },
  };
}
