/**
 * pytorch #182281. A check that all ranks compile the same graph is a collective itself, and a rank that takes its
 * graph from a cache skips it: the next collective of that rank meets the check of its peers. Here, rank 1 gathers once
 * more than rank 0.
 */
import type { CommandList } from "../../../src/commands/command-list.ts";
import { buildLists } from "../../machine/list-builder.ts";

export function oneMoreCollective(uneven: boolean): readonly CommandList[] {
  return buildLists(2, (list, rank) => {
    const [x, y] = [list.input([4]), list.output([2, 4])];
    for (const name of uneven && rank === 1 ? ["check", "allgather"] : ["allgather"]) {
      list.statement(name).collective(0, "Allgather", { team: [0, 1], input: x, output: y });
    }
  });
}
