/**
 * The sweep (order/sweep.ts) over the representatives' chains. It stops at the first thing that a correct Program lacks:
 * commands that are stuck, a signal or wait that may come too early, a race, an unwritten read.
 */
import { at } from "../../support/invariant.ts";
import { countingSteps, type OnProgress } from "../../support/progress.ts";
import { createContents } from "../check/contents.ts";
import { findGapByCounts } from "../check/coverage.ts";
import { createRaces } from "../check/races.ts";
import { createTenants } from "../check/tenants.ts";
import { nodeKinds } from "../order/graph.ts";
import { createClassClocks, type ClassSnapshot } from "./class-clocks.ts";
import type { ClassGraph } from "./class-graph.ts";
import { arrivalsOf } from "./class-transfers.ts";
import { advanceAll } from "./advance.ts";

/** What the notes need to know. */
export interface ClassObserver {
  /** A node of the first run starts on a chain that knows `known`. */
  starts(node: number, known: Int32Array): void;
  /** A wait of the first run, on a chain that knows `known`, for an event whose stream knew `recorded`. */
  waits(node: number, known: Int32Array, recorded: ClassSnapshot): void;
}

interface SlotState {
  readonly pending: { readonly snapshot: ClassSnapshot; readonly element: number }[];
  /** The latest wait. */
  taken: { readonly chain: number; readonly position: number; readonly visit: number } | null;
  signals: number;
  waits: number;
  lastSignal: number;
}

const runs = 2;
const none: readonly number[] = [];

/** Whether the classes have no problem. */
export function sweepClasses(
  graph: ClassGraph,
  observer: ClassObserver,
  allocated: Uint8Array,
  onProgress?: OnProgress,
): boolean {
  const { nodeCount, kind, argument, frame, nodesOf, chainOf, parts, program, group } = graph;
  const clocks = createClassClocks(graph);
  const races = createRaces(parts.table);
  const contents = createContents(parts, parts.table, allocated, findGapByCounts);
  const tenants = createTenants(program, allocated);
  const slots = new Map<number, SlotState>();
  const arrivals = arrivalsOf(graph, clocks);
  const queues = [...nodesOf.values()];
  const steps = runs * queues.reduce((sum, { length }) => sum + length, 0);
  const count = countingSteps(onProgress, "verifying one rank of each class, by command", steps);
  let isWrong = false;
  const stateOf = (slot: number): SlotState => {
    const state = slots.get(slot) ?? { pending: [], taken: null, signals: 0, waits: 0, lastSignal: -1 };
    slots.set(slot, state);
    return state;
  };
  const touch = (node: number, run: number, chain: number, position: number): void => {
    const row = clocks.view(chain);
    const visit = node + run * nodeCount;
    count();
    if (run === 0) observer.starts(node, row);
    for (let part = at(parts.start, node); part < at(parts.start, node + 1); part++) {
      const element = at(parts.element, part);
      const back = at(group.inverse, element);
      const known = { of: (other: number): number => row[back === 0 ? other : clocks.moved(other, back)] ?? 0 };
      const as = clocks.moved(chain, element);
      const buffer = kind[node] === nodeKinds.alloc ? at(argument, node) : -1;
      const before = buffer < 0 ? none : tenants.moveIn(buffer);
      const { whole } = parts.table;
      for (const other of before) races.moveIn(at(whole, buffer), at(whole, other), visit, as, known);
      races.touch(part, visit, as, position, known);
      if (run === 0) contents.starts(part, before);
    }
    isWrong ||= races.conflicts.length > 0 || contents.problems.length > 0;
  };
  const signal = (node: number, visit: number, chain: number, position: number): void => {
    const state = stateOf(at(argument, node));
    const element = at(frame, node);
    const { taken } = state;
    // Every signal comes after the wait for the one before it, and all are in the order of their list.
    if (state.signals > state.waits || state.lastSignal > visit) isWrong = true;
    if (taken !== null) {
      const waiting = clocks.moved(taken.chain, at(group.inverse, element));
      if (waiting !== chain && (clocks.view(chain)[waiting] ?? 0) < taken.position) isWrong = true;
    }
    state.signals++;
    state.lastSignal = visit;
    state.pending.push({ snapshot: clocks.snapshot(chain, position), element });
  };
  const take = (node: number, visit: number, chain: number, position: number): boolean => {
    const state = stateOf(at(argument, node));
    const next = state.pending.shift();
    if (next === undefined) return false;
    const { taken } = state;
    const follows = taken === null || taken.chain === chain || (clocks.view(chain)[taken.chain] ?? 0) >= taken.position;
    if (!follows || (taken !== null && taken.visit > visit)) isWrong = true;
    clocks.join(chain, next.snapshot, next.element);
    state.taken = { chain, position, visit };
    state.waits++;
    return true;
  };
  for (let run = 0; run < runs; run++) {
    const events = new Map<number, ClassSnapshot>();
    arrivals.begin();
    const step = (node: number, index: number, length: number): boolean => {
      const chain = at(chainOf, node);
      const position = index + 1 + run * length;
      const visit = node + run * nodeCount;
      const what = at(argument, node);
      switch (kind[node]) {
        case nodeKinds.record:
          // Of two records of one event, the first counts; both are a problem.
          isWrong ||= events.has(what);
          events.set(what, clocks.snapshot(chain, position));
          return true;
        case nodeKinds.wait: {
          const snapshot = events.get(what);
          if (snapshot === undefined) return false;
          if (run === 0) observer.waits(node, clocks.view(chain), snapshot);
          clocks.join(chain, snapshot, 0);
          return true;
        }
        case nodeKinds.signal:
          signal(node, visit, chain, position);
          return true;
        case nodeKinds.take:
          return take(node, visit, chain, position);
        case nodeKinds.transfer:
          if (!arrivals.hasArrived(node)) {
            touch(node, run, chain, position);
            arrivals.arrive(node, clocks.snapshot(chain, position - 1));
          }
          return arrivals.complete(node, chain);
        default:
          touch(node, run, chain, position);
          return true;
      }
    };
    if (!advanceAll(queues, step, () => isWrong) || isWrong) return false;
  }
  return [...slots.values()].every(({ pending }) => pending.length === 0);
}
