/**
 * Marks small peer copies to run as a kernel, because copy engines reach their rate only for many megabytes. Order,
 * streams and bytes stay the same.
 */
import type { Command } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { elementCount } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { commandRewrite, type Rewrite } from "../rewrite.ts";

/** The value is the largest copy, in bytes, that a kernel makes. */
export const kernelCopies: Rewrite<number> = commandRewrite("kernel-copies", (program, most) => {
  const ranks = program.ranks.map((list) => markRank(program, list, most));
  return ranks.every((list, rank) => list === program.ranks[rank]) ? program : { ...program, ranks };
});

function markRank({ buffers }: Program, list: RankProgram, most: number): RankProgram {
  const isSmall = (command: Command): boolean => {
    if (command.kind !== "copy" || command.engine === "kernel") return false;
    const { source, destination } = command;
    const crossesLink = [source, destination].some(({ buffer }) => at(buffers, buffer).rank !== list.rank);
    return crossesLink && elementCount(source.shape) * dtypes[source.dtype].bytes <= most;
  };
  if (!list.commands.some(isSmall)) return list;
  const commands = list.commands.map((command) =>
    command.kind === "copy" && isSmall(command) ? { ...command, engine: "kernel" as const } : command,
  );
  return { ...list, commands };
}
