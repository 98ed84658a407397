/**
 * What a draft is written in: nodes one by one, and those of a meeting around a kernel in peers' memory together, so that no rewrite puts
 * another command between them.
 */
import { barriersIn } from "../../commands/barriers.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Draft, DraftNode } from "./draft.ts";

/** By position: whether a node is part of a meeting. */
export function inMeetings({ nodes, rank }: Draft, memory: Pick<Program, "buffers">): readonly boolean[] {
  const isMet = nodes.map(() => false);
  for (const { first, last } of meetingsOf(nodes, rank, memory)) isMet.fill(true, first, last + 1);
  return isMet;
}

/** The positions of all nodes, those of a meeting together. */
export function groupsOf({ nodes, rank }: Draft, memory: Pick<Program, "buffers">): readonly (readonly number[])[] {
  const lastOf = new Map(meetingsOf(nodes, rank, memory).map(({ first, last }) => [first, last]));
  const groups: number[][] = [];
  for (let position = 0; position < nodes.length;) {
    const end = (lastOf.get(position) ?? position) + 1;
    groups.push(Array.from({ length: end - position }, (_, i) => position + i));
    position = end;
  }
  return groups;
}

function meetingsOf(
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

/** Dependences between groups, by place in the list of groups. */
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
