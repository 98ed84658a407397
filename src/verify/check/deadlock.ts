/**
 * Explains a stuck run by the shortest cycle of queues that wait for each other. Each queue's head waits for a command
 * of the next queue, which comes after that queue's head.
 *
 *   rank 0: recv from 1 waits for rank 1: send to 0, which comes after
 *   rank 1: recv from 0 waits for rank 0: send to 1, which comes after the first
 */
import { at } from "../../support/invariant.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import type { Stuck } from "../order/stuck.ts";

/** A queue's head, and the node of another queue that it waits for. */
export interface QueueWait {
  readonly node: number;
  readonly awaits: number;
}

/** Null if there is no cycle: all queues wait, directly or indirectly, for something that never happens. */
export function shortestCycle(graph: Graph, stuck: Stuck): readonly QueueWait[] | null {
  const { queues, queueOf, cursor } = stuck;
  const waitsOf = queues.map((nodes, queue): readonly QueueWait[] => {
    const node = nodes[at(cursor, queue)];
    return node === undefined ? [] : awaited(graph, stuck, node).map((awaits) => ({ node, awaits }));
  });
  let shortest: readonly QueueWait[] | null = null;
  for (const start of queues.keys()) {
    if (at(waitsOf, start).length === 0) continue;
    const cycle = cycleThrough(waitsOf, queueOf, start, shortest?.length ?? Infinity);
    if (cycle !== null) shortest = cycle;
  }
  return shortest;
}

/** Breadth-first search from `start` back to it; null if no path is shorter than `limit`. */
function cycleThrough(
  waitsOf: readonly (readonly QueueWait[])[],
  queueOf: Int32Array,
  start: number,
  limit: number,
): readonly QueueWait[] | null {
  const reachedBy = new Map<number, { readonly wait: QueueWait; readonly from: number }>();
  let front = [start];
  for (let length = 1; length < limit && front.length > 0; length++) {
    const next: number[] = [];
    for (const from of front) {
      for (const wait of at(waitsOf, from)) {
        const to = at(queueOf, wait.awaits);
        if (reachedBy.has(to)) continue;
        reachedBy.set(to, { wait, from });
        if (to === start) return backFrom(reachedBy, start);
        next.push(to);
      }
    }
    front = next;
  }
  return null;
}

function backFrom(
  reachedBy: ReadonlyMap<number, { readonly wait: QueueWait; readonly from: number }>,
  start: number,
): readonly QueueWait[] {
  const cycle: QueueWait[] = [];
  let queue = start;
  do {
    const step = reachedBy.get(queue);
    if (step === undefined) break;
    cycle.unshift(step.wait);
    queue = step.from;
  } while (queue !== start);
  return cycle;
}

/** The unreached nodes that the node waits for, one per queue that could unblock it. */
function awaited(graph: Graph, stuck: Stuck, node: number): readonly number[] {
  const { kind, argument, participants, program } = graph;
  const what = at(argument, node);
  switch (kind[node]) {
    case nodeKinds.wait:
      return remaining(graph, stuck, nodeKinds.record, what);
    case nodeKinds.take:
      return program.slots[what] === undefined ? [] : remaining(graph, stuck, nodeKinds.signal, what);
    case nodeKinds.transfer: {
      const id = at(participants.transfer, what);
      const all = Array.from(
        { length: at(participants.first, id + 1) - at(participants.first, id) },
        (_, i) => at(participants.first, id) + i,
      );
      return (participants.peers[what] ?? all)
        .filter((participant) => stuck.arrived[participant] === 0)
        .map((participant) => at(participants.node, participant));
    }
    default:
      return [];
  }
}

/** The first remaining node of every queue with this kind and argument. */
function remaining({ kind, argument }: Graph, { queues, cursor }: Stuck, wanted: number, what: number): number[] {
  return queues.flatMap((nodes, queue) => {
    const found = nodes.subarray(at(cursor, queue)).find((node) => kind[node] === wanted && argument[node] === what);
    return found ?? [];
  });
}
