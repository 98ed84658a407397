/**
 * The sweep (order/sweep.ts) over the representatives' chains. It stops at the first thing that a correct Program lacks:
 * commands that are stuck, a signal or wait that may come too early, a race, an unwritten read.
 */
import { at } from "../../support/invariant.ts";
import { countingSteps, type OnProgress } from "../../support/progress.ts";
import { createContents, createTenants } from "../check/contents.ts";
import { findGapByCounts } from "../check/coverage.ts";
import { createRaces } from "../check/races.ts";
import { nodeKinds } from "../order/graph.ts";
import type { ClassGraph } from "./class-graph.ts";

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
  const own = program.buffers.filter(({ rank }) => at(group.elementTo, rank) === 0);
  const tenants = createTenants(program, allocated, own);
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

// Transfers in a sweep over classes. A participant arrives when its representative does. What completes it, and whose
// knowledge it then has, is the same as in order/sweep.ts.

interface ClassArrivals {
  /** A run begins. */
  begin(): void;
  hasArrived(node: number): boolean;
  /** `snapshot`: what the chain knew at the start. */
  arrive(node: number, snapshot: ClassSnapshot): void;
  /** Whether all that the node waits for have arrived; its chain then knows what its sources knew. */
  complete(node: number, chain: number): boolean;
}

/** A participant: the representative's node, and the element that takes the representative to the rank. */
interface Place {
  readonly node: number;
  readonly element: number;
}

interface Needs {
  readonly peers: readonly Place[];
  readonly sources: readonly Place[];
  /** Nodes of which all ranks of the class are sources. */
  readonly whole: readonly number[];
}

type Nodes = Pick<ClassGraph, "program" | "group" | "firstNode" | "participants" | "argument">;

/** By node, on demand. */
export function needsOf({ program, group, firstNode, participants, argument }: Nodes): (node: number) => Needs {
  const known = new Map<number, Needs>();
  const { transfer, first, peers, sources } = participants;
  const placeOf = (participant: number): Place => {
    const id = at(transfer, participant);
    const { rank, command } = at(at(program.transfers, id).participants, participant - at(first, id));
    const base = at(firstNode, at(group.representative, rank));
    return { node: base + 1 + command, element: at(group.elementTo, rank) };
  };
  const placesOf = (own: number, which: readonly number[] | null): readonly Place[] => {
    if (which !== null) return which.map(placeOf);
    const [begin, end] = [at(first, at(transfer, own)), at(first, at(transfer, own) + 1)];
    return Array.from({ length: end - begin }, (_, i) => placeOf(begin + i));
  };
  return (node) => {
    const before = known.get(node);
    if (before !== undefined) return before;
    const own = at(argument, node);
    const from = placesOf(own, sources[own] ?? null);
    const counts = new Map<number, number>();
    for (const place of from) counts.set(place.node, (counts.get(place.node) ?? 0) + 1);
    const whole = [...counts].flatMap(([each, count]) => (count === group.elements.length ? [each] : []));
    const needs: Needs = {
      peers: distinctNodes([...placesOf(own, peers[own] ?? null), { node, element: 0 }]),
      sources: from.filter((place) => !whole.includes(place.node)),
      whole,
    };
    known.set(node, needs);
    return needs;
  };
}

function distinctNodes(places: readonly Place[]): readonly Place[] {
  const nodes = new Set<number>();
  return places.filter(({ node }) => {
    const isNew = !nodes.has(node);
    nodes.add(node);
    return isNew;
  });
}

function arrivalsOf(graph: Nodes, clocks: ClassClocks): ClassArrivals {
  const needs = needsOf(graph);
  const started = new Map<number, ClassSnapshot>();
  return {
    begin: () => started.clear(),
    hasArrived: (node) => started.has(node),
    arrive: (node, snapshot) => {
      started.set(node, snapshot);
    },
    complete: (node, chain) => {
      const { peers, sources, whole } = needs(node);
      if (!peers.every((peer) => started.has(peer.node))) return false;
      for (const source of whole) {
        const snapshot = started.get(source);
        if (snapshot !== undefined) clocks.joinAll(chain, snapshot);
      }
      for (const source of sources) {
        const snapshot = started.get(source.node);
        if (snapshot !== undefined) clocks.join(chain, snapshot, source.element);
      }
      return true;
    },
  };
}

// Queues of nodes that run until they block, in turn, until all have ended or none can go on.

/**
 * Whether all queues end. `step` runs a node of a queue, at `index` of `length`; false if it has to wait. `stops` ends
 * the run early.
 */
export function advanceAll(
  queues: readonly Int32Array[],
  step: (node: number, index: number, length: number) => boolean,
  stops: () => boolean = () => false,
): boolean {
  const done = new Int32Array(queues.length);
  for (let progress = true; progress && !stops();) {
    progress = false;
    for (const [queue, nodes] of queues.entries()) {
      let index = at(done, queue);
      const before = index;
      while (index < nodes.length && step(at(nodes, index), index, nodes.length)) index++;
      done[queue] = index;
      if (index > before) progress = true;
    }
  }
  return queues.every((nodes, queue) => done[queue] === nodes.length);
}

/** What a representative's chain knew at `position`. The row is not written any more. */
interface ClassSnapshot {
  readonly row: Int32Array;
  readonly chain: number;
  readonly position: number;
}

interface ClassClocks {
  /** The chain's row. Valid until its next join. */
  view(chain: number): Int32Array;
  snapshot(chain: number, position: number): ClassSnapshot;
  /** Adds what the image of the snapshot under `element` knows to the knowledge of `chain`. */
  join(chain: number, snapshot: ClassSnapshot, element: number): void;
  /** The same for all elements: what all ranks of a class knew. */
  joinAll(chain: number, snapshot: ClassSnapshot): void;
  /** The chain of the image rank. */
  moved(chain: number, element: number): number;
}

/**
 * Clock vectors of the representatives' chains, with an entry for every chain of every rank. A snapshot can be read as
 * that of another rank of the class: with the entries of each rank moved to where an element takes the rank.
 */
function createClassClocks({ program, group, chainBase, nodesOf }: ClassGraph): ClassClocks {
  const { elements, representative } = group;
  const rankCount = program.ranks.length;
  const width = at(chainBase, rankCount);
  const nothing = new Int32Array(width);
  const rows = new Map([...nodesOf.keys()].map((chain) => [chain, nothing]));
  /** Chains whose row a snapshot has. */
  const shared = new Set(rows.keys());
  const rankOfChain = new Int32Array(width);
  for (let rank = 0; rank < rankCount; rank++) rankOfChain.fill(rank, at(chainBase, rank), at(chainBase, rank + 1));
  const rowOf = (chain: number): Int32Array => rows.get(chain) ?? nothing;
  const moved = (chain: number, element: number): number => {
    const rank = at(rankOfChain, chain);
    return at(chainBase, at(at(elements, element), rank)) + chain - at(chainBase, rank);
  };
  const ownRow = (chain: number): Int32Array => {
    const row = rowOf(chain);
    if (!shared.delete(chain)) return row;
    const copy = row.slice();
    rows.set(chain, copy);
    return copy;
  };
  return {
    view: rowOf,
    moved,
    snapshot: (chain, position) => {
      shared.add(chain);
      return { row: rowOf(chain), chain, position };
    },
    join: (chain, { row, chain: of, position }, element) => {
      const from = moved(of, element);
      if (from === chain || at(rowOf(chain), from) >= position) return;
      const target = ownRow(chain);
      if (element === 0) raise(target, 0, row, 0, width);
      else {
        const to = at(elements, element);
        for (let rank = 0; rank < rankCount; rank++) {
          const base = at(chainBase, rank);
          raise(target, at(chainBase, at(to, rank)), row, base, at(chainBase, rank + 1) - base);
        }
      }
      target[from] = position;
    },
    joinAll: (chain, { row, chain: of, position }) => {
      const most = row.slice();
      most[of] = Math.max(at(most, of), position);
      const eachRank = (visit: (base: number, representatives: number, count: number) => void): void => {
        for (let rank = 0; rank < rankCount; rank++) {
          const base = at(chainBase, rank);
          visit(base, at(chainBase, at(representative, rank)), at(chainBase, rank + 1) - base);
        }
      };
      eachRank((base, of, count) => raise(most, of, most, base, count));
      const target = ownRow(chain);
      eachRank((base, of, count) => raise(target, base, most, of, count));
    },
  };
}

function raise(into: Int32Array, place: number, by: Int32Array, from: number, count: number): void {
  for (let i = 0; i < count; i++) {
    const value = by[from + i] ?? 0;
    if (value > (into[place + i] ?? 0)) into[place + i] = value;
  }
}
