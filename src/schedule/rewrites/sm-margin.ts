/**
 * Leaves SMs free if a kernel of few blocks should run concurrently with a GEMM: a kernel in peers' memory, or a kernel
 * copy. Today's GEMM libraries occupy every SM until they end, so such a kernel would wait for them. The rewrite
 * affects only time. TransformerEngine and FlashAttention call this sm_margin, PyTorch a carveout.
 *
 *     GEMM 0; GEMM 1; combine 0 | GEMM 2; combine 1     ->     GEMM 0; GEMMs 1 and 2 with a margin
 */
import type { Command } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { touchesPeers } from "../../commands/barriers.ts";
import { listOrder } from "../draft/list-order.ts";
import { isGemmLaunch } from "../draft/gemm-axes.ts";
import type { Rewrite } from "../rewrite.ts";

/** The value is the number of SMs. */
export const smMargin: Rewrite<number> = {
  name: "sm-margin",
  run: (program, count) => {
    const ranks = program.ranks.map((list) => markRank(program, list, count));
    return ranks.every((list, rank) => list === program.ranks[rank]) ? program : { ...program, ranks };
  },
};

function markRank(program: Program, list: RankProgram, count: number): RankProgram {
  const isBeside = (command: Command): boolean =>
    touchesPeers(program, list.rank, command) || (command.kind === "copy" && command.engine === "kernel");
  const positions = (is: (command: Command) => boolean): readonly number[] =>
    list.commands.flatMap((command, position) => (is(command) ? [position] : []));
  const gemms = positions((command) => isGemmLaunch(command, program));
  const small = positions(isBeside);
  if (gemms.length === 0 || small.length === 0) return list;
  const { before } = listOrder(list);
  // For each small kernel, the last GEMM that it waits for. Later GEMMs may be running when it begins.
  const awaited = new Map(small.map((position) => [position, gemms.findLast((gemm) => before(gemm, position)) ?? -1]));
  const marked = new Set(
    gemms.filter((gemm) =>
      small.some(
        (position) => (awaited.get(position) ?? -1) < gemm && !before(gemm, position) && !before(position, gemm),
      ),
    ),
  );
  const isNew = (command: Command, position: number): boolean =>
    marked.has(position) && command.kind === "launch" && command.smMargin !== count;
  if (!list.commands.some(isNew)) return list;
  const commands = list.commands.map((command, position) =>
    isNew(command, position) ? { ...command, smMargin: count } : command,
  );
  return { ...list, commands };
}
