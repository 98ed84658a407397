/**
 * The memory accesses of a Program's commands, by arena, and the kernels that a rewrite adds. Buffers that
 * share bytes of an arena conflict here too, so a rewrite that keeps the order of conflicting commands also keeps
 * lifetimes apart.
 */
import { type AddedKernels, createAddedKernels } from "../../../commands/additions.ts";
import type { Command } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import type { Touch } from "./touch.ts";
import type { TouchCache } from "./touch-index.ts";
import { getOrMake } from "../../../support/invariant.ts";

export interface DraftMemory extends AddedKernels {
  readonly buffers: Program["buffers"];
  readonly touches: (command: Command) => readonly Touch[];
}

/** `touched`: the accesses of commands that are known, shared by all memories of one Program. */
export function createDraftMemory(
  program: Program,
  cache: TouchCache,
  touched: Map<Command, readonly Touch[]>,
): DraftMemory {
  const { buffers } = program;
  const added = createAddedKernels(program.kernels, cache.textOf);
  const operands = { buffers, kernels: added.kernels };
  return {
    ...added,
    buffers,
    touches: (command) => getOrMake(touched, command, () => cache.touchesOf(command, operands)),
  };
}
