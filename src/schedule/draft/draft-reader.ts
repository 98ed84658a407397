/**
 * Reads the drafts of Programs. It keeps what the Programs of one search have in common: the accesses of commands that
 * only moved, and the drafts of Programs that several rewrites start from.
 */
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Draft } from "./draft.ts";
import { type Foreign, foreignTouches } from "./memory/foreign.ts";
import { type ReadDependences, unknownDependences } from "./order/known-dependences.ts";
import { listOrder } from "./order/list-order.ts";
import { createMemory, type Memory } from "./memory/memory.ts";
import type { Touch } from "./memory/touch.ts";
import { readDraft } from "./read-draft.ts";
import { signalGuarantees } from "./order/signal-guarantees.ts";
import { createTouchCache, type TouchCache } from "./memory/touch-cache.ts";

export interface ReadProgram {
  /** Of all ranks. */
  readonly drafts: readonly Draft[];
  readonly foreign: Foreign;
  readonly dependences: ReadDependences;
  /** For one edit, which may add kernels and buffers. */
  readonly newMemory: () => Memory;
}

export interface DraftReader {
  readonly read: (program: Program) => ReadProgram;
}

/** Drafts take more memory than their Program. A search comes back to few Programs at a time. */
const mostKept = 4;

export function createDraftReader(): DraftReader {
  const cache = createTouchCache();
  const kept = new Map<Program, ReadProgram>();
  return {
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
  const drafts = program.ranks.map((list) => readDraft(list, at(orders, list.rank), memory, { foreign, guarantee }));
  return { drafts, foreign, dependences: unknownDependences(drafts), newMemory };
}
