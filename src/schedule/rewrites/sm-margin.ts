/**
 * Leaves SMs free if a kernel in peers' memory, which has few blocks, should run concurrently with a GEMM. Today's GEMM
 * libraries occupy every SM until they end, so such a kernel would wait for them. The rewrite affects only time.
 * TransformerEngine and FlashAttention call this sm_margin, PyTorch a carveout.
 *
 *     GEMM 0; GEMM 1; combine 0 | GEMM 2; combine 1     ->     GEMM 0; GEMMs 1 and 2 with a margin
 */
import type { Command } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { touchesPeers } from "../../commands/barriers.ts";
import { type ListOrder, listOrder } from "../draft/order/list-order.ts";
import { isGemmLaunch } from "../draft/gemm-axes.ts";
import { at, groupedBy, countWhile } from "../../support/invariant.ts";
import { programRewrite, type Rewrite } from "../rewrite.ts";

/** The value is the number of SMs. */
export const smMargin: Rewrite<number> = programRewrite((program, count) => {
  const ranks = program.ranks.map((list) => markRank(program, list, count));
  return ranks.every((list, rank) => list === program.ranks[rank]) ? program : { ...program, ranks };
});

function markRank(program: Program, list: RankProgram, count: number): RankProgram {
  const isBeside = (command: Command): boolean => touchesPeers(program, list.rank, command);
  const positions = (is: (command: Command) => boolean): readonly number[] =>
    list.commands.flatMap((command, position) => (is(command) ? [position] : []));
  const gemms = positions((command) => isGemmLaunch(command, program));
  const small = positions(isBeside);
  if (gemms.length === 0 || small.length === 0) return list;
  const marked = besideThem(gemms, small, listOrder(list));
  const isNew = (command: Command, position: number): boolean =>
    marked.has(position) && command.kind === "launch" && command.smMargin !== count;
  if (!list.commands.some(isNew)) return list;
  const commands = list.commands.map((command, position) =>
    isNew(command, position) ? { ...command, smMargin: count } : command,
  );
  return { ...list, commands };
}

/**
 * The GEMMs that may be running when one of the small kernels begins: those after the last GEMM that it waits for,
 * until one on the same stream waits for it.
 */
function besideThem(gemms: readonly number[], small: readonly number[], order: ListOrder): ReadonlySet<number> {
  const streams = groupedBy(gemms, order.streamOf);
  // By stream: how many small kernels begin and cease to be beside the GEMMs at a place.
  const changes = new Map([...streams].map(([stream, own]) => [stream, new Int32Array(own.length + 1)]));
  for (const position of small) {
    const awaited = Math.max(
      -1,
      ...Array.from(streams.values(), (own) => own[countWhile(own, (gemm) => order.before(gemm, position)) - 1] ?? -1),
    );
    for (const [stream, own] of streams) {
      const first = countWhile(own, (gemm) => gemm <= awaited);
      const end = countWhile(own, (gemm) => gemm <= awaited || !order.before(position, gemm));
      const counts = changes.get(stream);
      if (counts === undefined || end <= first) continue;
      counts[first] = at(counts, first) + 1;
      counts[end] = at(counts, end) - 1;
    }
  }
  const marked = new Set<number>();
  for (const [stream, own] of streams) {
    let beside = 0;
    for (const [place, gemm] of own.entries()) {
      beside += changes.get(stream)?.[place] ?? 0;
      if (beside > 0) marked.add(gemm);
    }
  }
  return marked;
}
