/**
 * The order in which the commands of a draft are issued: all that can go on without another rank first, signals as early as they can be
 * given, and a blocking command only when nothing else is left, as late as what needs it allows. So is a free that nothing needs, which
 * would else make its stream wait for the last use.
 *
 * So the list still completes on one queue if the draft did. Of all ranks' heads, all blocking, take the one that comes first in an
 * order in which the drafts complete; what it waits for is behind another blocking command of its rank that comes earlier still.
 */
import { at, invariant } from "../support/invariant.ts";
import { dependentsOf } from "./dependences.ts";
import { type DraftNode, isBlocking } from "./draft.ts";

/** Positions of `nodes` in issue order. `dependences` as of `dependencesOf`. */
export function issueOrder(
  nodes: readonly DraftNode[],
  dependences: readonly (readonly number[])[],
): readonly number[] {
  const dependents = dependentsOf(dependences);
  const keys = issueKeys(nodes, dependences, dependents);
  const open = dependences.map((before) => before.length);
  const free = createQueue(keys);
  const late = createQueue(keys);
  const add = (position: number): void => {
    const { command } = at(nodes, position);
    const isLast = command.kind === "free" && at(dependents, position).length === 0;
    (isLast || isBlocking(command) ? late : free).push(position);
  };
  for (const [position, count] of open.entries()) if (count === 0) add(position);
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
  invariant(order.length === nodes.length, "dependences of a draft have no cycle", { nodes: nodes.length });
  return order;
}

/**
 * Positions; a signal or an alloc stands just behind what it needs, a wait for a signal or a free just before the first command that needs
 * it, or at the end.
 */
function issueKeys(
  nodes: readonly DraftNode[],
  dependences: readonly (readonly number[])[],
  dependents: readonly (readonly number[])[],
): readonly number[] {
  const keys = nodes.map((_, position) => position);
  for (const [position, { command }] of nodes.entries()) {
    if (command.kind !== "signal" && command.kind !== "alloc") continue;
    const earliest = command.kind === "alloc" ? -2 : -1;
    keys[position] = at(dependences, position).reduce((last, other) => Math.max(last, at(keys, other)), earliest) + 0.5;
  }
  for (let position = nodes.length - 1; position >= 0; position--) {
    const { kind } = at(nodes, position).command;
    if (kind !== "waitSignal" && kind !== "free") continue;
    const first = at(dependents, position).reduce((least, other) => Math.min(least, at(keys, other)), nodes.length);
    keys[position] = first - 0.5;
  }
  return keys;
}

interface Queue {
  readonly push: (position: number) => void;
  /** The position with the least key, of equal keys the least; undefined where there is none. */
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
