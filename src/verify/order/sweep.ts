/**
 * One sweep over two runs that checks progress and order together. Chains run until they block, with synchronous
 * transfers; if nothing can proceed, the rest is a deadlock. Meanwhile every chain keeps a clock vector of the order
 * under eager transfers (participants.ts), and each access is compared with earlier ones under that order. The graph
 * has no choices (docs/verifier.md), so one sweep covers all executions.
 *
 * The first run ends on all ranks before the second begins. That is one of the possible orders, and clocks do not
 * record it.
 */
import { at } from "../../support/invariant.ts";
import { createClocks, type Snapshot } from "./clocks.ts";
import type { Known } from "./known.ts";
import { chainLength, type Graph, nodeKinds } from "./graph.ts";
import { createArrivals } from "./arrivals.ts";
import { createSlots, type SlotMisuse } from "./slots.ts";

/** What a sweep reports. `visit` is the node's number over both runs: node + run * nodeCount. */
export interface SweepObserver {
  /** Whether `starts` is also called for events, waits and signals, which touch no memory. */
  readonly every?: boolean;
  /** A node starts, and its chain knows `known`; `position` is its own in the chain. */
  starts?(node: number, visit: number, chain: number, position: number, known: Known): void;
  /** A chain that knows `known` waits for an event whose stream, at `position` of chain `from`, knew `recorded`. */
  waits?(node: number, known: Known, recorded: Known, from: number, position: number): void;
}

export interface SweepResult {
  /** By chain: the number of nodes left in the run that did not end; null if both ended. */
  readonly stuckAt: Int32Array | null;
  readonly misuses: readonly SlotMisuse[];
}

export function sweep(graph: Graph, runs: number, observer: SweepObserver): SweepResult {
  const { chains, chainNodes, chainStart, kind, argument, eventWaits, nodeCount } = graph;
  const clocks = createClocks(chains.length);
  const slots = createSlots(clocks);
  const arrivals = createArrivals(graph, clocks);
  const cursor = new Int32Array(chains.length);
  let stuckAt: Int32Array | null = null;
  for (let run = 0; run < runs && stuckAt === null; run++) {
    cursor.fill(0);
    arrivals.begin();
    const events = Array.from(eventWaits, (): Snapshot | undefined => undefined);
    const recorded = new Uint8Array(eventWaits.length);
    const eventWaiters = new Map<number, number[]>();
    const ready = Array.from(chains.keys());
    const queued = new Uint8Array(chains.length).fill(1);
    const wake = (chain: number): void => {
      if (queued[chain] === 1) return;
      queued[chain] = 1;
      ready.push(chain);
    };
    const step = (chain: number, node: number, position: number, visit: number): boolean => {
      const what = argument[node] ?? -1;
      const kindHere = kind[node] ?? nodeKinds.work;
      // Kinds that order others and touch no memory. A wait that is tried again starts again, with the same clock.
      if (observer.every === true && kindHere >= nodeKinds.record && kindHere <= nodeKinds.take) {
        observer.starts?.(node, visit, chain, position, clocks.view(chain));
      }
      switch (kindHere) {
        case nodeKinds.record: {
          const waits = at(eventWaits, what);
          if (waits > 0 && recorded[what] === 0) events[what] = clocks.snapshot(chain, position, waits);
          recorded[what] = 1;
          for (const waiter of eventWaiters.get(what) ?? []) wake(waiter);
          return true;
        }
        case nodeKinds.wait: {
          if (recorded[what] === 0) {
            const waiters = eventWaiters.get(what);
            if (waiters === undefined) eventWaiters.set(what, [chain]);
            else waiters.push(chain);
            return false;
          }
          const snapshot = events[what];
          if (snapshot === undefined) return true;
          observer.waits?.(node, clocks.view(chain), snapshot.row.known, snapshot.chain, snapshot.position);
          clocks.join(chain, snapshot);
          return true;
        }
        case nodeKinds.signal:
          for (const waiter of slots.signal(what, chain, position, visit)) wake(waiter);
          return true;
        case nodeKinds.take:
          return slots.take(what, chain, position, visit);
        case nodeKinds.transfer: {
          if (!arrivals.hasArrived(what)) {
            observer.starts?.(node, visit, chain, position, clocks.view(chain));
            for (const waiter of arrivals.arrive(what, chain, position)) wake(waiter);
          }
          return arrivals.isComplete(what);
        }
        default:
          observer.starts?.(node, visit, chain, position, clocks.view(chain));
          return true;
      }
    };
    for (let chain = ready.pop(); chain !== undefined; chain = ready.pop()) {
      queued[chain] = 0;
      const [start, length] = [at(chainStart, chain), chainLength(graph, chain)];
      let done = at(cursor, chain);
      while (done < length) {
        const node = at(chainNodes, start + done);
        if (!step(chain, node, done + 1 + run * length, node + run * nodeCount)) break;
        done++;
      }
      cursor[chain] = done;
    }
    if (cursor.some((done, chain) => done < chainLength(graph, chain))) stuckAt = cursor.slice();
  }
  return { stuckAt, misuses: slots.misuses };
}
