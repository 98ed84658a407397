/**
 * The order in which the commands of a draft are issued: first all that can proceed without another rank, signals as
 * early as possible, and a blocking command only when nothing else is left, as late as its dependents allow. The same
 * holds for a free that nothing needs, which would otherwise make its stream wait for the last use. A barrier around a
 * kernel in peers' memory is issued whole, like one blocking command, and its signals only then.
 *
 * The list therefore completes on one queue if the draft did. Proof: of all ranks' heads, all blocking, take the one
 * that comes first in an order in which the drafts complete. What it waits for stands after another blocking command of
 * its rank that comes earlier still. With barriers this needs drafts that complete with each barrier whole, which holds
 * if it held for the list that was read.
 */
import { isBlocking } from "../../commands/command.ts";
import { at, invariant } from "../../support/invariant.ts";
import { dependentsOf } from "./dependences.ts";
import type { DraftNode } from "./draft.ts";

/**
 * Places in `groups` in issue order: each is a node, or the nodes of a meeting. `dependences` between them, as of
 * `groupDependences`.
 */
export function issueOrder(
  groups: readonly (readonly DraftNode[])[],
  dependences: readonly (readonly number[])[],
): readonly number[] {
  const dependents = dependentsOf(dependences);
  const keys = issueKeys(groups, dependences, dependents);
  const open = dependences.map((before) => before.length);
  const free = createQueue(keys);
  const late = createQueue(keys);
  const add = (group: number): void => {
    const nodes = at(groups, group);
    const isLast = at(nodes, 0).command.kind === "free" && at(dependents, group).length === 0;
    (isLast || nodes.some(({ command }) => isBlocking(command)) ? late : free).push(group);
  };
  for (const [group, count] of open.entries()) if (count === 0) add(group);
  const order: number[] = [];
  for (;;) {
    const next = free.pop() ?? late.pop();
    if (next === undefined) break;
    order.push(next);
    for (const dependent of at(dependents, next)) {
      open[dependent] = at(open, dependent) - 1;
      if (open[dependent] === 0) add(dependent);
    }
  }
  invariant(order.length === groups.length, "dependences of a draft have no cycle", { groups: groups.length });
  return order;
}

/**
 * Places in the draft; a signal or an alloc stands just behind what it needs, a wait for a signal or a free just before the first command that
 * needs it, or at the end. A meeting has its own place.
 */
function issueKeys(
  groups: readonly (readonly DraftNode[])[],
  dependences: readonly (readonly number[])[],
  dependents: readonly (readonly number[])[],
): readonly number[] {
  const keys = groups.map((_, group) => group);
  const kinds = groups.map((nodes) => (nodes.length === 1 ? at(nodes, 0).command.kind : "meeting"));
  for (const [group, kind] of kinds.entries()) {
    if (kind !== "signal" && kind !== "alloc") continue;
    const earliest = kind === "alloc" ? -2 : -1;
    keys[group] = at(dependences, group).reduce((last, other) => Math.max(last, at(keys, other)), earliest) + 0.5;
  }
  for (let group = groups.length - 1; group >= 0; group--) {
    const kind = at(kinds, group);
    if (kind !== "waitSignal" && kind !== "free") continue;
    const first = at(dependents, group).reduce((least, other) => Math.min(least, at(keys, other)), groups.length);
    keys[group] = first - 0.5;
  }
  return keys;
}

interface Queue {
  readonly push: (position: number) => void;
  /** The position with the least key (of equal keys, the least position); undefined if there is none. */
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
