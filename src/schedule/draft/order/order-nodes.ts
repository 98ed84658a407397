/**
 * The issue order of a draft's commands. Commands that can proceed without another rank come first, signals as early as
 * possible. A blocking command is issued only if nothing else is left, as late as its dependents allow. The same holds
 * for a free that nothing depends on, which would otherwise make its stream wait for the last use. A barrier around a
 * kernel in peers' memory is issued as a whole, like one blocking command, and its signals with it.
 *
 * The list therefore completes on one queue if the draft did. Proof: consider the heads of all ranks' queues, all
 * blocking, and an order in which the drafts complete. Take the head that is first in that order. The signal that it
 * waits for comes, in its rank's list, after another blocking command that is earlier in the order: a contradiction.
 * With barriers, the drafts must complete with each barrier as a whole. This holds if it held for the list that was
 * read.
 */
import { barriersIn } from "../../../commands/barriers.ts";
import { isBlocking } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { Draft, DraftNode } from "../draft.ts";
import { type DraftDependences, dependentsOf } from "./known-dependences.ts";

/** Indices into `groups`, in issue order. `dependences` are those of `groupDependences`. */
export function issueOrder(
  groups: readonly (readonly DraftNode[])[],
  dependences: Pick<DraftDependences, "before" | "sequence">,
): readonly number[] {
  const dependents = dependentsOf(dependences.before);
  const keys = issueKeys(groups, dependences, dependents);
  const open = dependences.before.map((before) => before.length);
  const free = createQueue(keys);
  const late = createQueue(keys);
  const add = (group: number): void => {
    if (group >= groups.length) return free.push(group);
    const nodes = at(groups, group);
    const isLast = at(nodes, 0).command.kind === "free" && at(dependents, group).length === 0;
    (isLast || nodes.some(({ command }) => isBlocking(command)) ? late : free).push(group);
  };
  for (const [group, count] of open.entries()) if (count === 0) add(group);
  const order: number[] = [];
  for (;;) {
    const next = free.pop() ?? late.pop();
    if (next === undefined) break;
    if (next < groups.length) order.push(next);
    for (const dependent of at(dependents, next)) {
      open[dependent] = at(open, dependent) - 1;
      if (open[dependent] === 0) add(dependent);
    }
  }
  invariant(order.length === groups.length, "dependences of a draft have no cycle", { groups: groups.length });
  return order;
}

/**
 * Sort keys: positions in the draft. A signal or an alloc comes right after the nodes that it depends on. A wait for a
 * signal, or a free, comes right before the first command that depends on it, or at the end. A barrier keeps its
 * position. A join is no command and comes first of all.
 */
function issueKeys(
  groups: readonly (readonly DraftNode[])[],
  { before, sequence }: Pick<DraftDependences, "before" | "sequence">,
  dependents: readonly (readonly number[])[],
): readonly number[] {
  const keys = before.map((_, vertex) => vertex);
  const kinds = groups.map((nodes) => (nodes.length === 1 ? at(nodes, 0).command.kind : "barrier"));
  const isJoin = (vertex: number): boolean => vertex >= groups.length;
  const lastBefore = (vertex: number, least: number): number =>
    at(before, vertex).reduce((last, other) => Math.max(last, at(keys, other)), least);
  for (const vertex of sequence) {
    if (isJoin(vertex)) keys[vertex] = lastBefore(vertex, -Infinity);
    else if (kinds[vertex] === "signal") keys[vertex] = lastBefore(vertex, -1) + 0.5;
    else if (kinds[vertex] === "alloc") keys[vertex] = lastBefore(vertex, -2) + 0.5;
  }
  for (const vertex of sequence.toReversed()) {
    const kind = kinds[vertex];
    if (!isJoin(vertex) && kind !== "waitSignal" && kind !== "free") continue;
    const first = at(dependents, vertex).reduce((least, other) => Math.min(least, at(keys, other)), groups.length);
    keys[vertex] = isJoin(vertex) ? first : first - 0.5;
  }
  return keys.map((key, vertex) => (isJoin(vertex) ? -Infinity : key));
}

interface Queue {
  readonly push: (position: number) => void;
  /** The position with the smallest key (among equal keys, the smallest position); undefined if there is none. */
  readonly pop: () => number | undefined;
}

/** A binary heap. */
function createQueue(keys: readonly number[]): Queue {
  const heap: number[] = [];
  const precedes = (i: number, j: number): boolean => {
    const [a, b] = [at(heap, i), at(heap, j)];
    return at(keys, a) < at(keys, b) || (at(keys, a) === at(keys, b) && a < b);
  };
  const swap = (i: number, j: number): void => {
    const held = at(heap, i);
    heap[i] = at(heap, j);
    heap[j] = held;
  };
  return {
    push: (position) => {
      heap.push(position);
      for (let i = heap.length - 1; i > 0;) {
        const parent = (i - 1) >> 1;
        if (!precedes(i, parent)) break;
        swap(i, parent);
        i = parent;
      }
    },
    pop: () => {
      const top = heap[0];
      const last = heap.pop();
      if (top === undefined || last === undefined || heap.length === 0) return top;
      heap[0] = last;
      for (let i = 0; ;) {
        const left = 2 * i + 1;
        if (left >= heap.length) break;
        const child = left + 1 < heap.length && precedes(left + 1, left) ? left + 1 : left;
        if (!precedes(child, i)) break;
        swap(i, child);
        i = child;
      }
      return top;
    },
  };
}

// Groups the nodes of a draft. A barrier with its kernel in peers' memory is one group, so that no rewrite inserts a
// command into it. All other nodes are groups of one.

/** By position: whether a node is part of a barrier around a kernel. */
export function inBarriers({ nodes, rank }: Draft, memory: Pick<Program, "buffers">): readonly boolean[] {
  const inBarrier = nodes.map(() => false);
  for (const { first, last } of barriersOf(nodes, rank, memory)) inBarrier.fill(true, first, last + 1);
  return inBarrier;
}

/** The positions of all nodes, by group. */
export function nodeGroups({ nodes, rank }: Draft, memory: Pick<Program, "buffers">): readonly (readonly number[])[] {
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
  dependences: DraftDependences,
): Pick<DraftDependences, "before" | "sequence" | "nodes"> {
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
