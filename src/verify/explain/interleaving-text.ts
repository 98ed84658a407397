/**
 * An interleaving that exposes a race: everything that must precede the second command, then the second command, and
 * only then, in the machine's default order, the first. Its lines are steps, RANK:STREAM, and actions of callers
 * (src/machine/interleaving.ts); transfers are eager.
 */
import { at } from "../../support/invariant.ts";
import type { PastRow } from "../order/sweep.ts";
import { chainLength, type Graph, nodeKinds } from "../order/graph.ts";
import type { Participants } from "../order/slots.ts";
import { placeOf, placeText } from "./places.ts";

/** What an interleaving runs: all the pasts, then the second of the two. */
export interface InterleavingRequest {
  readonly first: number;
  readonly second: number;
  /** The past of each visit: of `second` and, if it is a transfer, of the participants whose data it needs. */
  readonly pasts: ReadonlyMap<number, PastRow>;
}

/** The visits whose pasts an interleaving needs; none if it cannot contain the second one. */
export function visitsFor(graph: Graph, second: number): readonly number[] {
  const { kind, argument, participants, nodeCount } = graph;
  if (second >= nodeCount) return kind[second - nodeCount] === nodeKinds.callerWrites ? [second] : [];
  if (kind[second] !== nodeKinds.transfer) return [second];
  return [
    second,
    ...sourcesOf(participants, at(argument, second)).map((participant) => at(participants.node, participant)),
  ];
}

/**
 * The text of an interleaving file. Null if one run cannot show it, for example if the commands belong to different
 * runs. A caller that is the second reads or writes at once; a caller that is the first writes last.
 */
export function interleavingText(graph: Graph, { first, second, pasts }: InterleavingRequest): string | null {
  const { nodeCount, kind, chainOf, position, rankOf } = graph;
  const visits = visitsFor(graph, second);
  if (visits.length === 0 || first >= nodeCount || kind[first] === nodeKinds.callerReads) return null;
  const past = joined(visits.flatMap((visit) => pasts.get(visit) ?? []));
  if (at(past, at(chainOf, first)) >= at(position, first)) return null;
  const action = callerActionOf(graph, second);
  // A free or alloc has no effect by itself. The commands after it have, so everything that does not need the first
  // command runs.
  const frees = kind[second % nodeCount] === nodeKinds.free || kind[second % nodeCount] === nodeKinds.alloc;
  const steps = stepsThrough(graph, past, action === null ? second : null, frees ? first : null);
  if (steps === null) return null;
  const last = kind[first] === nodeKinds.callerWrites ? [`writes:${at(rankOf, first)}`] : [];
  return [
    `# ${placeText(placeOf(graph, second))}`,
    `# before ${placeText(placeOf(graph, first))}`,
    "eager",
    ...steps,
    ...(action === null ? [] : [action]),
    ...last,
    "",
  ].join("\n");
}

function callerActionOf({ kind, rankOf, nodeCount }: Graph, visit: number): string | null {
  const node = visit % nodeCount;
  if (kind[node] === nodeKinds.callerReads) return `reads:${at(rankOf, node)}`;
  return kind[node] === nodeKinds.callerWrites ? `overwrites:${at(rankOf, node)}` : null;
}

function joined(pasts: readonly PastRow[]): PastRow {
  const [first, ...rest] = pasts;
  const past = Int32Array.from(first ?? []);
  for (const other of rest)
    for (const [chain, position] of other.entries()) past[chain] = Math.max(at(past, chain), position);
  return past;
}

function sourcesOf(participants: Participants, participant: number): readonly number[] {
  const sources = participants.sources[participant] ?? null;
  if (sources !== null) return sources;
  const id = at(participants.transfer, participant);
  const begin = at(participants.first, id);
  return Array.from({ length: at(participants.first, id + 1) - begin }, (_, i) => begin + i);
}

/**
 * Steps that complete as many nodes of every chain as `past` says, then `last`; null if they wait for each other. If
 * `held` is given, then everything that can run without it.
 */
function stepsThrough(graph: Graph, past: PastRow, last: number | null, held: number | null): readonly string[] | null {
  const { chains, chainOf, chainStart, chainNodes, kind, argument, participants, position: positionOf } = graph;
  const limits = past.map((count, chain) => Math.min(count, chainLength(graph, chain)));
  if (last !== null) limits[at(chainOf, last)] = Math.max(at(limits, at(chainOf, last)), at(positionOf, last));
  const steps: string[] = [];
  const done = new Int32Array(chains.length);
  const recorded = new Set<number>();
  const signals = new Map<number, number>();
  const arrived = new Set<number>();
  /** Participants whose arrival completes another participant's transfer. */
  const wanted = new Set<number>();
  const add = (chain: number): void => {
    const { rank, stream } = at(chains, chain);
    steps.push(`${rank}:${stream}`);
  };
  const arrive = (chain: number, participant: number): void => {
    if (arrived.has(participant)) return;
    arrived.add(participant);
    add(chain);
  };
  /** Whether the node completes. */
  const run = (chain: number, node: number): boolean => {
    const what = at(argument, node);
    switch (kind[node] ?? nodeKinds.work) {
      case nodeKinds.callerWrites:
      case nodeKinds.callerReads:
        return true;
      case nodeKinds.record:
        recorded.add(what);
        break;
      case nodeKinds.wait:
        if (!recorded.has(what)) return false;
        break;
      case nodeKinds.signal:
        signals.set(what, (signals.get(what) ?? 0) + 1);
        break;
      case nodeKinds.take:
        if ((signals.get(what) ?? 0) === 0) return false;
        signals.set(what, (signals.get(what) ?? 0) - 1);
        break;
      case nodeKinds.transfer:
        arrive(chain, what);
        for (const source of sourcesOf(participants, what)) wanted.add(source);
        if (sourcesOf(participants, what).some((source) => !arrived.has(source))) return false;
        break;
    }
    add(chain);
    return true;
  };
  /** Whether anything moved. */
  const advanceOnce = (limits: Int32Array): boolean => {
    let moved = false;
    for (let chain = 0; chain < chains.length; chain++) {
      const limit = at(limits, chain);
      const start = at(chainStart, chain);
      const before = steps.length;
      let position = at(done, chain);
      while (position < limit && run(chain, at(chainNodes, start + position))) position++;
      const next = chainNodes[start + position];
      if (position === limit && position < chainLength(graph, chain) && next !== undefined) {
        const participant = at(argument, next);
        if (kind[next] === nodeKinds.transfer && next !== held && wanted.has(participant)) arrive(chain, participant);
      }
      if (position !== done[chain] || steps.length !== before) moved = true;
      done[chain] = position;
    }
    return moved;
  };
  while (advanceOnce(limits));
  if (chains.some((_, chain) => at(done, chain) !== limits[chain])) return null;
  if (held !== null) {
    const rest = Int32Array.from(chains, (_, chain) => chainLength(graph, chain));
    rest[at(chainOf, held)] = at(positionOf, held) - 1;
    while (advanceOnce(rest));
  }
  return steps;
}
