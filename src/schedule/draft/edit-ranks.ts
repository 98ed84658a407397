/**
 * Applies an edit to the draft of every rank: reads the lists, edits them, and writes them. It then updates the rest of
 * the Program: the positions of transfers' participants, and the kernels still in use.
 */
import type { KernelId } from "../../commands/command.ts";
import type { LinkedTransfer, Program, RankProgram } from "../../commands/program.ts";
import { makeId } from "../../support/ids.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Draft } from "./draft.ts";
import { type Foreign, foreignTouches } from "./foreign.ts";
import { listOrder } from "./list-order.ts";
import { createMemory, type Memory } from "./memory.ts";
import { readDraft } from "./read-draft.ts";
import { signalGuarantees } from "./signal-guarantees.ts";
import { writeDraft } from "./write-draft.ts";

export interface EditContext {
  readonly program: Program;
  readonly memory: Memory;
  /** The drafts of all ranks, as they were read. */
  readonly drafts: readonly Draft[];
  readonly foreign: Foreign;
}

/**
 * `edit` returns the same draft if it has nothing to change. If no draft changes, the result is the same Program.
 * Otherwise all lists are written, because a rewrite may rely on the issue order of other ranks.
 */
export function editRanks(program: Program, edit: (draft: Draft, context: EditContext) => Draft): Program {
  const memory = createMemory(program);
  const foreign = foreignTouches(program, memory);
  const orders = program.ranks.map(listOrder);
  const guarantee = signalGuarantees(program, orders, memory, foreign);
  const drafts = program.ranks.map((list) => {
    return readDraft(list, at(orders, list.rank), memory, { foreign, guarantee });
  });
  const context: EditContext = { program, memory, drafts, foreign };
  const edited = drafts.map((draft) => edit(draft, context));
  if (edited.every((draft, rank) => draft === drafts[rank])) return program;
  const written = edited.map((draft) => writeDraft(draft, memory));
  const ranks = program.ranks.map((rank, i): RankProgram => ({
    ...rank,
    ...at(written, i).list,
    arenaBytes: { ...rank.arenaBytes, temporary: memory.temporaryBytes(i) },
  }));
  const transfers = program.transfers.map((transfer): LinkedTransfer => ({
    ...transfer,
    participants: transfer.participants.map((participant) => {
      const command = at(written, participant.rank).positions.get(participant.command);
      invariant(command !== undefined, "rewrites keep transfers", participant);
      return { ...participant, command };
    }),
  }));
  return usedKernels({ ...program, ranks, transfers, kernels: memory.kernels, buffers: memory.buffers });
}

/** Reads and writes all lists. Events then order only what must be. */
export function rewriteAnew(program: Program): Program {
  return editRanks(program, (draft) => ({ ...draft }));
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
