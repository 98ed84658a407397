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
import { isBlocking } from "../../commands/command.ts";
import { at, invariant } from "../../support/invariant.ts";
import { dependentsOf } from "./dependences.ts";
import type { DraftNode } from "./draft.ts";

/** Indices into `groups`, in issue order. `dependences` are between groups, from `groupDependences`. */
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
 * Sort keys: positions in the draft. A signal or an alloc comes right after the nodes that it depends on. A wait for a
 * signal, or a free, comes right before the first command that depends on it, or at the end. A barrier keeps its
 * position.
 */
function issueKeys(
  groups: readonly (readonly DraftNode[])[],
  dependences: readonly (readonly number[])[],
  dependents: readonly (readonly number[])[],
): readonly number[] {
  const keys = groups.map((_, group) => group);
  const kinds = groups.map((nodes) => (nodes.length === 1 ? at(nodes, 0).command.kind : "barrier"));
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
