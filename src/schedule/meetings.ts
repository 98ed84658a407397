/**
 * A kernel that reads or writes peers' memory stands in the middle of a meeting: its signals and waits directly before it and behind it on
 * its stream. A GPU can make them part of the kernel, which waits by itself and tells its peers by itself, so no rewrite may
 * put another command between them.
 *
 *     product | signal ready, wait ready, combine, signal done, wait done | product
 */
import type { CommandKind } from "../commands/command.ts";
import { touchesPeers } from "../commands/touches-peers.ts";
import { at } from "../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import type { Memory } from "./memory.ts";

/** Positions of neighbours in a draft. */
export interface Meeting {
  readonly first: number;
  readonly last: number;
}

/** In ascending order, none sharing a node with another. */
export function meetingsIn(nodes: readonly DraftNode[], rank: number, memory: Memory): readonly Meeting[] {
  const meetings: Meeting[] = [];
  for (const [position, node] of nodes.entries()) {
    if (!touchesPeers(memory, rank, node.command)) continue;
    const { stream } = node.command;
    const start = (meetings.at(-1)?.last ?? -1) + 1;
    const is = (other: number, kind: CommandKind): boolean => {
      const command = other < start ? undefined : nodes[other]?.command;
      return command?.kind === kind && command.stream === stream;
    };
    const run = (from: number, step: 1 | -1, kind: CommandKind): number => {
      let end = from;
      while (is(end + step, kind)) end += step;
      return end;
    };
    meetings.push({
      first: run(run(position, -1, "waitSignal"), -1, "signal"),
      last: run(run(position, 1, "signal"), 1, "waitSignal"),
    });
  }
  return meetings;
}

/** The positions of all nodes, those of a meeting together. */
export function groupsOf(nodes: readonly DraftNode[], meetings: readonly Meeting[]): readonly (readonly number[])[] {
  const lastOf = new Map(meetings.map(({ first, last }) => [first, last]));
  const groups: number[][] = [];
  for (let position = 0; position < nodes.length;) {
    const end = (lastOf.get(position) ?? position) + 1;
    groups.push(Array.from({ length: end - position }, (_, i) => position + i));
    position = end;
  }
  return groups;
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
