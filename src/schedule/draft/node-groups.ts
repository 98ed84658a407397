/**
 * Groups the nodes of a draft. A barrier with its kernel in peers' memory is one group, so that no rewrite inserts a
 * command into it. All other nodes are groups of one.
 */
import { barriersIn } from "../../commands/barriers.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Draft, DraftNode } from "./draft.ts";

/** By position: whether a node is part of a barrier around a kernel. */
export function inBarriers({ nodes, rank }: Draft, memory: Pick<Program, "buffers">): readonly boolean[] {
  const inBarrier = nodes.map(() => false);
  for (const { first, last } of barriersOf(nodes, rank, memory)) inBarrier.fill(true, first, last + 1);
  return inBarrier;
}

/** The positions of all nodes, by group. */
export function groupsOf({ nodes, rank }: Draft, memory: Pick<Program, "buffers">): readonly (readonly number[])[] {
  const lastOf = new Map(barriersOf(nodes, rank, memory).map(({ first, last }) => [first, last]));
  const groups: number[][] = [];
  for (let position = 0; position < nodes.length;) {
    const end = (lastOf.get(position) ?? position) + 1;
    groups.push(Array.from({ length: end - position }, (_, i) => position + i));
    position = end;
  }
  return groups;
}

function barriersOf(
  nodes: readonly DraftNode[],
  rank: number,
  memory: Pick<Program, "buffers">,
): ReturnType<typeof barriersIn> {
  return barriersIn(
    nodes.map(({ command }) => command),
    rank,
    memory,
  );
}

/** Dependences between groups, by index of the group. */
export function groupDependences(
  groups: readonly (readonly number[])[],
  dependences: readonly (readonly number[])[],
): readonly (readonly number[])[] {
  if (groups.length === dependences.length) return dependences;
  const groupOf = new Int32Array(dependences.length);
  for (const [group, positions] of groups.entries()) for (const position of positions) groupOf[position] = group;
  return groups.map((positions, group) => {
    const before = positions.flatMap((position) => at(dependences, position).map((other) => at(groupOf, other)));
    return [...new Set(before)].filter((other) => other !== group).sort((a, b) => a - b);
  });
}
