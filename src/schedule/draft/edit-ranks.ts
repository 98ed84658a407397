/**
 * Applies an edit to the draft of every rank: reads the lists, edits them, and writes them. It then updates the rest of
 * the Program: the positions of transfers' participants, and the kernels still in use.
 */
import type { KernelId } from "../../commands/command.ts";
import type { LinkedTransfer, Program, RankProgram } from "../../commands/program.ts";
import { makeId } from "../../support/ids.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Draft } from "./draft.ts";
import { createDraftReader, type DraftReader } from "./draft-reader.ts";
import type { Foreign } from "./memory/foreign.ts";
import { createKnownDependences, type KnownDependences } from "./order/known-dependences.ts";
import type { Memory } from "./memory/memory.ts";
import { writeDraft } from "./write-draft.ts";

export interface EditContext {
  readonly program: Program;
  readonly memory: Memory;
  /** The drafts of all ranks, as they were read. */
  readonly drafts: readonly Draft[];
  readonly foreign: Foreign;
  readonly dependences: KnownDependences;
}

/** The edit of a rank's draft. */
export type Edit = (draft: Draft, context: EditContext) => Draft;

/**
 * `edit` returns the same draft if it has nothing to change. If no draft changes, the result is the same Program.
 * Otherwise all lists are written, because a rewrite may rely on the issue order of other ranks.
 */
export function editRanks(program: Program, reader: DraftReader, edit: Edit): Program {
  const { context, drafts } = contextOf(program, reader);
  const { memory } = context;
  const edited = drafts.map((draft) => edit(draft, context));
  if (edited.every((draft, rank) => draft === drafts[rank])) return program;
  const written = edited.map((draft) => writeDraft(draft, memory, context.dependences));
  const ranks = program.ranks.map((rank, i): RankProgram => ({
    ...rank,
    ...at(written, i).list,
  }));
  const transfers = program.transfers.map((transfer): LinkedTransfer => ({
    ...transfer,
    participants: transfer.participants.map((participant) => {
      const command = at(written, participant.rank).positions.get(participant.command);
      invariant(command !== undefined, "rewrites keep transfers", participant);
      return { ...participant, command };
    }),
  }));
  return usedKernels({ ...program, ranks, transfers, kernels: memory.kernels });
}

/** Whether `edit` changes a draft. Edits only ranks up to the first that changes, and writes none. */
export function changesRanks(program: Program, reader: DraftReader, edit: Edit): boolean {
  const { context, drafts } = contextOf(program, reader);
  return drafts.some((draft) => edit(draft, context) !== draft);
}

function contextOf(program: Program, reader: DraftReader): { context: EditContext; drafts: readonly Draft[] } {
  const { drafts, foreign, dependences: read, newMemory } = reader.read(program);
  const memory = newMemory();
  const dependences = createKnownDependences(read, memory);
  return { context: { program, memory, drafts, foreign, dependences }, drafts };
}

/** Reads and writes all lists. Events then order only what must be. */
export function rewriteAnew(program: Program): Program {
  return editRanks(program, createDraftReader(), (draft) => ({ ...draft }));
}

/** Removes kernels that no command launches any more, because back ends prepare every kernel of a Program. */
function usedKernels(program: Program): Program {
  const used = new Set<KernelId>();
  for (const { commands } of program.ranks) {
    for (const command of commands) if (command.kind === "launch") used.add(command.kernel);
  }
  if (used.size === program.kernels.length) return program;
  const ids = [...used].sort((a, b) => a - b);
  const idOf = new Map(ids.map((id, index) => [id, makeId<KernelId>(index)]));
  const ranks = program.ranks.map((rank): RankProgram => ({
    ...rank,
    commands: rank.commands.map((command) =>
      command.kind === "launch" ? { ...command, kernel: idOf.get(command.kernel) ?? command.kernel } : command,
    ),
  }));
  return { ...program, ranks, kernels: ids.map((id) => at(program.kernels, id)) };
}
