/**
 * What a list may lack apart from the sweep: events that an earlier command records, and progress with one queue for
 * the whole list of each rank.
 */
import { at } from "../../support/invariant.ts";
import { nodeKinds } from "../order/graph.ts";
import { advanceAll } from "./advance.ts";
import type { ClassGraph } from "./class-graph.ts";
import { needsOf } from "./class-transfers.ts";

/** Whether the lists of all representatives end if each has one queue. Each event must be recorded earlier in its list. */
export function endsInOneQueue(graph: ClassGraph): boolean {
  const { kind, argument, eventCount, representatives, firstNode, program } = graph;
  const recorded = new Uint8Array(eventCount);
  const signals = new Map<number, number>();
  const arrived = new Set<number>();
  const needs = needsOf(graph);
  const queues = representatives.map((rank) => {
    const first = at(firstNode, rank);
    return Int32Array.from({ length: at(program.ranks, rank).commands.length + 2 }, (_, i) => first + i);
  });
  return advanceAll(queues, (node) => {
    const what = at(argument, node);
    switch (kind[node]) {
      case nodeKinds.record: {
        const isFirst = recorded[what] === 0;
        recorded[what] = 1;
        return isFirst;
      }
      case nodeKinds.wait:
        return recorded[what] === 1;
      case nodeKinds.signal:
        signals.set(what, (signals.get(what) ?? 0) + 1);
        return true;
      case nodeKinds.take: {
        const count = signals.get(what) ?? 0;
        if (count > 0) signals.set(what, count - 1);
        return count > 0;
      }
      case nodeKinds.transfer:
        arrived.add(node);
        return needs(node).peers.every((peer) => arrived.has(peer.node));
      default:
        return true;
    }
  });
}
