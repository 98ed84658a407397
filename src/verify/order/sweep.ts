/**
 * One sweep over two runs that checks progress and order together. Chains run until they block, with synchronous
 * transfers; if nothing can proceed, the rest is a deadlock. Meanwhile every chain keeps a clock vector of the order
 * under eager transfers (slots.ts), and each access is compared with earlier ones under that order. The graph
 * has no choices (docs/verifier.md), so one sweep covers all executions.
 *
 * The first run ends on all ranks before the second begins. That is one of the possible orders, and clocks do not
 * record it.
 */
import { at, getOrMake, invariant, pushTo } from "../../support/invariant.ts";
import { chainLength, type Graph, nodeKinds } from "./graph.ts";
import { type Clocks, createClocks, type Known, type SharedRow, type Snapshot } from "./known.ts";
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
            pushTo(eventWaiters, what, chain);
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

// Transfers in a sweep. A participant completes when all its peers have arrived, and then knows what its sources knew
// when they arrived. If all participants of a collective need each other's data, all know the same afterwards and share
// one clock vector. Participants of a group that need the same data, as when many ranks receive from the same ones, share
// what the sources know together.

interface Arrivals {
  /** A run begins. */
  begin(): void;
  hasArrived(participant: number): boolean;
  isComplete(participant: number): boolean;
  /** Returns the chains of participants that can now continue. `position` is the transfer's. */
  arrive(participant: number, chain: number, position: number): readonly number[];
}

function createArrivals({ participants, chainOf }: Graph, clocks: Clocks): Arrivals {
  const { count, transfer, first, peers, sources, node } = participants;
  const arrived = new Uint8Array(count);
  const complete = new Uint8Array(count);
  const missing = new Int32Array(count);
  const started = Array.from({ length: count }, (): Snapshot | undefined => undefined);
  const circles = circlesOf(sources);
  const readers = readersOf(sources, circles, count);
  /** For collectives: the number of participants that have arrived. */
  const present = new Int32Array(first.length);
  const chainOfParticipant = (participant: number): number => at(chainOf, at(node, participant));
  const startOf = (source: number): Snapshot => {
    const snapshot = started[source];
    invariant(snapshot !== undefined, "a source has arrived before what needs it completes", source);
    return snapshot;
  };
  const takeSources = (participant: number): void => {
    const chain = chainOfParticipant(participant);
    const circle = circles.get(participant);
    if (circle === undefined) {
      for (const source of sources[participant] ?? []) clocks.join(chain, startOf(source));
      return;
    }
    circle.known ??= clocks.together(circle.sources.map(startOf), circle.readers);
    clocks.learn(chain, circle.known);
  };
  const completeAll = (begin: number, end: number): readonly number[] => {
    const chains: number[] = [];
    for (let participant = begin; participant < end; participant++) {
      complete[participant] = 1;
      chains.push(chainOfParticipant(participant));
    }
    if (sources[begin] === null) clocks.unite(started.slice(begin, end).filter((snapshot) => snapshot !== undefined));
    for (let participant = begin; participant < end; participant++) takeSources(participant);
    return chains;
  };
  return {
    begin: () => {
      arrived.fill(0);
      complete.fill(0);
      present.fill(0);
      for (const circle of circles.values()) circle.known = null;
      for (let participant = 0; participant < count; participant++)
        missing[participant] = peers[participant]?.length ?? 0;
    },
    hasArrived: (participant) => arrived[participant] === 1,
    isComplete: (participant) => complete[participant] === 1,
    arrive: (participant, chain, position) => {
      arrived[participant] = 1;
      // The participant's knowledge at its start, which excludes its own completion.
      const reads = sources[participant] === null ? 1 : at(readers, participant);
      if (reads > 0) started[participant] = clocks.snapshot(chain, position - 1, reads);
      const awaited = peers[participant] ?? null;
      if (awaited === null) {
        const id = at(transfer, participant);
        const here = at(present, id) + 1;
        present[id] = here;
        const [begin, end] = [at(first, id), at(first, id + 1)];
        return here < end - begin ? [] : completeAll(begin, end);
      }
      const chains: number[] = [];
      const completeIfReady = (one: number): void => {
        if (at(missing, one) > 0 || complete[one] === 1 || arrived[one] === 0) return;
        complete[one] = 1;
        takeSources(one);
        chains.push(chainOfParticipant(one));
      };
      for (const peer of awaited) missing[peer] = at(missing, peer) - 1;
      for (const peer of awaited) completeIfReady(peer);
      completeIfReady(participant);
      return chains;
    },
  };
}

/** Participants that need the data of the same ones, which may be among them. */
interface Circle {
  readonly sources: readonly number[];
  readers: number;
  /** What the sources know together, in this run. */
  known: SharedRow | null;
}

const none: readonly number[] = [];
/** Fewer sources are joined one by one. */
const leastOfCircle = 8;

/** By participant. Its own knowledge adds nothing to it, so one that is among the sources of others counts as its own. */
function circlesOf(sources: readonly (readonly number[] | null)[]): ReadonlyMap<number, Circle> {
  const isSource = new Uint8Array(sources.length);
  for (const needed of sources) for (const source of needed ?? []) isSource[source] = 1;
  const byText = new Map<string, Circle>();
  const circles = new Map<number, Circle>();
  for (const [participant, needed] of sources.entries()) {
    if (needed === null || needed.length < leastOfCircle) continue;
    const own = isSource[participant] === 1 && !needed.includes(participant) ? [participant] : none;
    const all = Int32Array.from([...needed, ...own]).sort();
    const circle = getOrMake(byText, all.join(), () => ({ sources: [...all], readers: 0, known: null }));
    circle.readers++;
    circles.set(participant, circle);
  }
  return circles;
}

/** How often the knowledge of each participant at its start is read. */
function readersOf(
  sources: readonly (readonly number[] | null)[],
  circles: ReadonlyMap<number, Circle>,
  count: number,
): Int32Array {
  const readers = new Int32Array(count);
  const read = (source: number): void => {
    readers[source] = at(readers, source) + 1;
  };
  for (const [participant, needed] of sources.entries()) if (!circles.has(participant)) needed?.forEach(read);
  for (const circle of new Set(circles.values())) circle.sources.forEach(read);
  return readers;
}

// The knowledge of certain nodes at their start, from a separate sweep. Only findings need it, so a correct Program
// never pays for it.

/** By chain, including its own: the number of nodes that have completed before the visit starts. */
export type PastRow = Int32Array;

export function capturePasts(graph: Graph, visits: ReadonlySet<number>): ReadonlyMap<number, PastRow> {
  const pasts = new Map<number, PastRow>();
  sweep(graph, 2, {
    every: true,
    starts: (_node, visit, chain, position, known) => {
      if (!visits.has(visit)) return;
      const past = known.all();
      past[chain] = position - 1;
      pasts.set(visit, past);
    },
  });
  return pasts;
}

/** Of pairs of different nodes: those whose first completes before the second starts, in one run. */
interface Orders {
  has(first: number, second: number): boolean;
}

export function captureOrders(graph: Graph, pairs: readonly (readonly [number, number])[]): Orders {
  const { chainOf, position: positionOf, nodeCount } = graph;
  const firsts = new Map<number, number[]>();
  for (const [first, second] of pairs) {
    pushTo(firsts, second, first);
  }
  const ordered = new Set<number>();
  sweep(graph, 1, {
    starts: (node, _visit, chain, position, known) => {
      for (const first of firsts.get(node) ?? []) {
        const of = at(chainOf, first);
        const done = of === chain ? position - 1 : known.of(of);
        if (done >= at(positionOf, first)) ordered.add(node * nodeCount + first);
      }
    },
  });
  return { has: (first, second) => ordered.has(second * nodeCount + first) };
}

/** The visit at a position of a chain. Positions start at 1, and both count over two runs. */
export function visitAt({ chainStart, chainNodes, nodeCount }: Graph, chain: number, position: number): number {
  const [start, end] = [at(chainStart, chain), at(chainStart, chain + 1)];
  const length = end - start;
  const run = Math.floor((position - 1) / length);
  return at(chainNodes, start + ((position - 1) % length)) + run * nodeCount;
}
