/**
 * Programs of equal groups of consecutive ranks that exchange nothing with each other, as with tensor parallelism on each
 * of many hosts and one sequence per host. What one group does, and when, the others do too.
 */
import type { Program } from "../../commands/program.ts";
import { accessesOf } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import { createUnionFind } from "../../support/union-find.ts";
import { isSymmetry } from "./prove-classes.ts";

/** The Program of the ranks of the first group; the Program itself if it is not of such groups. */
export function oneOfEqualGroups(program: Program): Program {
  const size = firstGroup(program);
  const { ranks, buffers, transfers, slots, devicesPerHost = ranks.length } = program;
  const count = ranks.length;
  if (size === count || count % size !== 0 || devicesPerHost % size !== 0) return program;
  const next = Uint16Array.from(ranks, ({ rank }) => (rank + size) % count);
  if (!isSymmetry(program, next)) return program;
  const isIn = (rank: number): boolean => rank < size;
  const own = {
    ranks: ranks.slice(0, size),
    buffers: buffers.filter(({ rank }) => isIn(rank)),
    transfers: transfers.filter(({ participants }) => participants.every(({ rank }) => isIn(rank))),
    slots: slots.filter(({ waiter }) => isIn(waiter)),
  };
  // Ids are positions.
  const areFirst = [own.buffers, own.transfers, own.slots].every((all) => all.every(({ id }, i) => id === i));
  const isApart = own.ranks.every(({ commands }) =>
    commands.every((command) => {
      const { reads, writes } = accessesOf(command, program);
      return [...reads, ...writes].every(({ buffer }) => buffer < own.buffers.length);
    }),
  );
  return areFirst && isApart ? { ...program, ...own } : program;
}

/** The number of ranks of the group of rank 0; that of all ranks if they are not consecutive. */
function firstGroup({ ranks, transfers, slots }: Program): number {
  const groups = createUnionFind(ranks.length);
  for (const { participants } of transfers) {
    for (const { rank } of participants) groups.union(at(participants, 0).rank, rank);
  }
  for (const { signaller, waiter } of slots) groups.union(signaller, waiter);
  const own = [...ranks.keys()].filter((rank) => groups.find(rank) === 0);
  return own.at(-1) === own.length - 1 ? own.length : ranks.length;
}
