/**
 * Groups the nodes of a draft. A barrier with its kernel in peers' memory is one group, so that no rewrite inserts a
 * command into it. All other nodes are groups of one.
 */
import { barriersIn } from "../../../commands/barriers.ts";
import type { Program } from "../../../commands/program.ts";
import { at } from "../../../support/invariant.ts";
import type { Dependences } from "./dependences.ts";
import type { Draft, DraftNode } from "../draft.ts";

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

/** Dependences between groups. Vertices are the groups by index, then the joins. */
export function groupDependences(
  groups: readonly (readonly number[])[],
  dependences: Dependences,
): Pick<Dependences, "before" | "sequence" | "nodes"> {
  const { before, sequence, nodes, lastOf } = dependences;
  if (groups.length === nodes) return dependences;
  const groupOf = new Int32Array(nodes);
  for (const [group, positions] of groups.entries()) for (const position of positions) groupOf[position] = group;
  const vertexOf = (vertex: number): number => (vertex < nodes ? at(groupOf, vertex) : vertex - nodes + groups.length);
  const ofGroups = groups.map((positions, group) => {
    const first = at(positions, 0);
    const own = new Set<number>();
    const left = positions.flatMap((position) => at(before, position));
    for (let vertex = left.pop(); vertex !== undefined; vertex = left.pop()) {
      // A signal's past has the kernel of its own barrier: the group depends on the others one by one.
      if (vertex >= nodes && lastOf(vertex) >= first) left.push(...at(before, vertex));
      else own.add(vertexOf(vertex));
    }
    own.delete(group);
    return [...own].sort((a, b) => a - b);
  });
  const ofJoins = before.slice(nodes).map((members) => [...new Set(members.map(vertexOf))].sort((a, b) => a - b));
  return {
    before: [...ofGroups, ...ofJoins],
    sequence: [...new Set(sequence.map(vertexOf))],
    nodes: groups.length,
  };
}
