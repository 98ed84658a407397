/**
 * Reads the drafts of Programs. It keeps what the Programs of one search have in common: the accesses of commands that
 * only moved, and the drafts of Programs that several rewrites start from.
 */
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { symmetryOf } from "../../verify/classes/prove-classes.ts";
import type { RankGroup } from "../../verify/classes/rank-group.ts";
import type { Draft } from "./draft.ts";
import { type Foreign, foreignTouches } from "./memory/foreign.ts";
import type { ReadDependences } from "./order/known-dependences.ts";
import { listOrder } from "./order/list-order.ts";
import { createMemory, type Memory } from "./memory/memory.ts";
import type { Touch } from "./memory/touch.ts";
import { readDraft } from "./read-draft.ts";
import { signalGuarantees } from "./order/signal-guarantees.ts";
import { createTouchCache, type TouchCache } from "./memory/touch-cache.ts";

export interface ReadProgram {
  /** Of all ranks, read when they are asked for. */
  readonly drafts: readonly Draft[];
  readonly draftOf: (rank: number) => Draft;
  readonly foreign: Foreign;
  readonly dependences: ReadDependences;
  /** For one edit, which may add kernels and buffers. */
  readonly newMemory: () => Memory;
}

export interface DraftReader {
  readonly read: (program: Program) => ReadProgram;
  /** The symmetries by which one rank of each class is edited; null if every rank is. */
  readonly symmetry: (program: Program) => RankGroup | null;
  /** Notes that `made` has the symmetries of the Program that it was made from. */
  readonly keepSymmetry: (made: Program, group: RankGroup) => void;
}

/** With fewer ranks, editing each takes less time. */
const fewestRanks = 4;

/** Drafts take more memory than their Program. A search comes back to few Programs at a time. */
const mostKept = 4;

/** `byClass`: whether one rank of each class is edited, where that is possible. */
export function createDraftReader(byClass = true): DraftReader {
  const cache = createTouchCache();
  const kept = new Map<Program, ReadProgram>();
  const groups = new WeakMap<Program, RankGroup>();
  const unlike = new WeakSet<Program>();
  return {
    symmetry: (program) => {
      if (!byClass || program.ranks.length < fewestRanks || unlike.has(program)) return null;
      const group = groups.get(program) ?? symmetryOf(program);
      if (group === null) unlike.add(program);
      else groups.set(program, group);
      return group;
    },
    keepSymmetry: (made, group) => void groups.set(made, group),
    read: (program) => {
      const found = kept.get(program) ?? readProgram(program, cache);
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

function readProgram(program: Program, cache: TouchCache): ReadProgram {
  const touched = new Map<Command, readonly Touch[]>();
  const newMemory = (): Memory => createMemory(program, cache, touched);
  const memory = newMemory();
  const foreign = foreignTouches(program, memory);
  const orders = program.ranks.map(listOrder);
  const guarantee = signalGuarantees(program, orders, memory, foreign);
  const known = new Map<number, Draft>();
  const dependences: ReadDependences = new Map();
  const draftOf = (rank: number): Draft => {
    const draft =
      known.get(rank) ?? readDraft(at(program.ranks, rank), at(orders, rank), memory, { foreign, guarantee });
    if (!known.has(rank)) {
      known.set(rank, draft);
      dependences.set(draft.nodes, null);
    }
    return draft;
  };
  return {
    get drafts() {
      return program.ranks.map(({ rank }) => draftOf(rank));
    },
    draftOf,
    foreign,
    dependences,
    newMemory,
  };
}
