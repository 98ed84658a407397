/**
 * Whether a run ends: every queue runs until it blocks. No step can disable another, so the remaining commands are
 * stuck in every execution. Queues are streams, or one per rank, the smallest number that hardware may have. Between
 * the two, streams of pairs have separate queues and the other streams of a rank have one.
 */
import { at, pushTo } from "../../support/invariant.ts";
import { type Graph, nodeKinds } from "./graph.ts";

export type StuckMode = "streams" | "pairs" | "ranks";

/** A run that stopped. */
export interface Stuck {
  readonly mode: StuckMode;
  /** Nodes of each queue, in its order. */
  readonly queues: readonly Int32Array[];
  readonly queueOf: Int32Array;
  /** By queue: the number of its completed nodes. Its head is the next node. */
  readonly cursor: Int32Array;
  readonly recorded: Uint8Array;
  readonly arrived: Uint8Array;
}

/** Null if all queues finish. Transfers are synchronous. */
export function findStuck(graph: Graph, mode: StuckMode): Stuck | null {
  const { kind, argument, eventWaits, participants, program } = graph;
  const { queues, queueOf } = queuesOf(graph, mode);
  const cursor = new Int32Array(queues.length);
  const recorded = new Uint8Array(eventWaits.length);
  const arrived = new Uint8Array(participants.count);
  const missing = Int32Array.from(participants.peers, (peers) => peers?.length ?? 0);
  const present = new Int32Array(program.transfers.length);
  const signals = new Map<number, number>();
  /** Queues that wait for an event, a slot or a transfer. */
  const waiters = new Map<string, number[]>();
  const ready = [...queues.keys()];
  const waitFor = (what: string, queue: number): false => {
    pushTo(waiters, what, queue);
    return false;
  };
  const wake = (what: string): true => {
    const woken = waiters.get(what);
    if (woken !== undefined) {
      waiters.delete(what);
      ready.push(...woken);
    }
    return true;
  };
  const isComplete = (participant: number): boolean => {
    if (participants.peers[participant] !== null) return at(missing, participant) === 0;
    const id = at(participants.transfer, participant);
    return at(present, id) === at(participants.first, id + 1) - at(participants.first, id);
  };
  const arrive = (participant: number): void => {
    arrived[participant] = 1;
    const id = at(participants.transfer, participant);
    present[id] = at(present, id) + 1;
    for (const peer of participants.peers[participant] ?? []) missing[peer] = at(missing, peer) - 1;
    // A rank of a collective that woke at every arrival would take steps that grow with the square of the team.
    if (participants.peers[participant] !== null || isComplete(participant)) wake(`transfer ${id}`);
  };
  const step = (queue: number, node: number): boolean => {
    const what = at(argument, node);
    switch (kind[node]) {
      case nodeKinds.record:
        recorded[what] = 1;
        return wake(`event ${what}`);
      case nodeKinds.wait:
        return recorded[what] === 1 || waitFor(`event ${what}`, queue);
      case nodeKinds.signal:
        signals.set(what, (signals.get(what) ?? 0) + 1);
        return wake(`slot ${what}`);
      case nodeKinds.take: {
        const count = signals.get(what) ?? 0;
        if (count === 0) return waitFor(`slot ${what}`, queue);
        signals.set(what, count - 1);
        return true;
      }
      case nodeKinds.transfer:
        if (arrived[what] === 0) arrive(what);
        return isComplete(what) || waitFor(`transfer ${at(participants.transfer, what)}`, queue);
      default:
        return true;
    }
  };
  for (let queue = ready.pop(); queue !== undefined; queue = ready.pop()) {
    const nodes = at(queues, queue);
    let done = at(cursor, queue);
    while (done < nodes.length && step(queue, at(nodes, done))) done++;
    cursor[queue] = done;
  }
  if (queues.every((nodes, queue) => cursor[queue] === nodes.length)) return null;
  return { mode, queues, queueOf, cursor, recorded, arrived };
}

function queuesOf(graph: Graph, mode: StuckMode): Pick<Stuck, "queues" | "queueOf"> {
  const { chains, chainOf, chainStart, chainNodes, nodeBase, rankOf, program } = graph;
  const nodesOf = (chain: number): Int32Array => chainNodes.subarray(at(chainStart, chain), at(chainStart, chain + 1));
  if (mode === "streams") return { queues: chains.map((_, chain) => nodesOf(chain)), queueOf: chainOf };
  const queueOf = rankOf.slice();
  const apart = mode === "pairs" ? pairChains(graph) : [];
  for (const [i, chain] of apart.entries()) {
    for (const node of nodesOf(chain)) queueOf[node] = program.ranks.length + i;
  }
  const shared = program.ranks.map((_, rank) => {
    const [start, end] = [at(nodeBase, rank), at(nodeBase, rank + 1)];
    const all = Int32Array.from({ length: end - start }, (_unused, i) => start + i);
    return all.filter((node) => queueOf[node] === rank);
  });
  return { queues: [...shared, ...apart.map(nodesOf)], queueOf };
}

/** The chains on streams of pairs. */
export function pairChains({ chains, program }: Graph): readonly number[] {
  const isPair = program.ranks.map(
    ({ streams }) => new Set<number>(streams.flatMap(({ id, role }) => (role === "pair" ? [id] : []))),
  );
  return [...chains.keys()].filter((chain) => {
    const { rank, stream } = at(chains, chain);
    return at(isPair, rank).has(stream);
  });
}
