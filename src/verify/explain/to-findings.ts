/**
 * Joins findings of the same code and statements into one, with their number. A loop with a missing synchronization is
 * then one finding instead of one per iteration and rank. Causes come before their consequences: first inputs that the
 * caller may overwrite, then lifetimes, then conflicts across runs.
 */
import type { DiagnosticCode } from "../../diagnostics/codes.ts";
import { at } from "../../support/invariant.ts";
import type { Finding, SharedMemory } from "../finding.ts";
import { capturePasts, type PastRow, visitAt } from "../order/sweep.ts";
import { type Graph, nodeKinds, chainLength } from "../order/graph.ts";
import { diagnosticPlace, placeOf, placeText } from "./places.ts";
import type { Participants } from "../order/slots.ts";

/** Further findings get no counterexample. */
const mostExplained = 16;

/** An interleaving for mistakes that every order shows. */
const anyOrder = "seed:0\n";

export function toFindings(graph: Graph, raw: readonly RawFinding[], explained: boolean): readonly Finding[] {
  const groups = new Map<string, { readonly finding: RawFinding; occurrences: number }>();
  for (const finding of raw) {
    const key = keyOf(graph, finding);
    const group = groups.get(key);
    const { occurrences = 1 } = finding;
    if (group === undefined) groups.set(key, { finding, occurrences });
    else group.occurrences += occurrences;
  }
  const found = [...groups.values()].toSorted((a, b) => consequence(graph, a.finding) - consequence(graph, b.finding));
  const withEdge = explained ? found.filter(({ finding }) => finding.edge !== null).slice(0, mostExplained) : [];
  const examples = counterexamples(
    graph,
    withEdge.flatMap(({ finding: { edge } }) => (edge === null ? [] : [edge])),
  );
  return found.map((group) =>
    findingOf(graph, group.finding, group.occurrences, examples[withEdge.indexOf(group)] ?? null),
  );
}

/** How far a missing order is from a wrong value; 0 for all other mistakes. */
function consequence({ kind, nodeCount }: Graph, { edge, severity }: RawFinding): number {
  if (edge === null || severity === "note") return 0;
  const [, second] = edge;
  // One run shows inputs that a caller writes too early and, if bytes are shared, the effects of a free.
  if (second >= nodeCount) return kind[second - nodeCount] === nodeKinds.callerWrites ? 1 : 3;
  return edge.some((visit) => kind[visit] === nodeKinds.alloc || kind[visit] === nodeKinds.free) ? 2 : 0;
}

/** Equal for the same mistake in another iteration or on another rank. */
function keyOf(graph: Graph, { code, visits, memory }: RawFinding): string {
  const places = visits.map((visit) => placeOf(graph, visit));
  const [first] = places;
  const statements = places.map(
    ({ kind, path, run, rank }) =>
      `${kind} ${path.join(".")} ${run - (first?.run ?? 0)} ${rank === first?.rank ? "here" : "there"}`,
  );
  return [code, memory?.tensor ?? "", ...statements].join("|");
}

function findingOf(graph: Graph, finding: RawFinding, occurrences: number, example: Counterexample | null): Finding {
  const { code, severity, message, visits, memory, found, expected, help, notes, edge } = finding;
  const commands = visits.map((visit) => placeOf(graph, visit));
  const last = commands.at(-1);
  const ancestor = example === null || example.ancestor === null ? null : placeOf(graph, example.ancestor);
  const more = occurrences === 1 ? [] : [`and ${occurrences - 1} more of the same statements`];
  const common = ancestor === null ? [] : [`both come after: ${placeText(ancestor)}`];
  return {
    code,
    severity,
    message,
    ...(last === undefined ? {} : { place: diagnosticPlace(last) }),
    found,
    expected,
    help,
    notes: [...notes, ...common, ...more],
    commands,
    occurrences,
    memory,
    ancestor,
    missingEdge: edge === null ? null : { from: placeOf(graph, at(edge, 0)), to: placeOf(graph, at(edge, 1)) },
    interleaving: example?.interleaving ?? (code === "unwritten-read" ? anyOrder : null),
  };
}

// The evidence for a finding: the last command that precedes both of its commands, and an interleaving in which the
// second runs before the first. It takes separate sweeps, and only for findings that are shown.

interface Counterexample {
  /** The visit of the nearest common ancestor. */
  readonly ancestor: number | null;
  readonly interleaving: string | null;
}

/** For pairs of visits in their intended order. */
function counterexamples(graph: Graph, pairs: readonly Pair[]): readonly Counterexample[] {
  if (pairs.length === 0) return [];
  const ancestors = commonAncestors(graph, pairs);
  const pasts = capturePasts(graph, new Set(pairs.flatMap(([, second]) => visitsFor(graph, second))));
  return pairs.map(([first, second], i) => ({
    ancestor: at(ancestors, i),
    interleaving: interleavingText(graph, { first, second, pasts }),
  }));
}

type Pair = readonly [number, number];

/**
 * The nearest common ancestor of two unordered visits: the last node that both come after; null if there is none.
 * Candidates are, per chain, the last node in both pasts. The nearest is one that no other candidate comes after,
 * preferably on the rank of one of the two.
 */
function commonAncestors(graph: Graph, pairs: readonly Pair[]): readonly (number | null)[] {
  const pasts = capturePasts(graph, new Set(pairs.flat()));
  const candidates = pairs.map((pair) => candidatesOf(graph, pasts, pair));
  const theirs = capturePasts(graph, new Set(candidates.flat()));
  return pairs.map((pair, i) => nearest(graph, at(candidates, i), theirs, pair));
}

function candidatesOf(graph: Graph, pasts: ReadonlyMap<number, PastRow>, [a, b]: Pair): readonly number[] {
  const [one, other] = [pasts.get(a), pasts.get(b)];
  if (one === undefined || other === undefined) return [];
  return graph.chains.flatMap((_, chain) => {
    const position = Math.min(at(one, chain), at(other, chain));
    return position === 0 ? [] : [visitAt(graph, chain, position)];
  });
}

function nearest(
  { chainOf, position, chainStart, rankOf, nodeCount }: Graph,
  candidates: readonly number[],
  pasts: ReadonlyMap<number, PastRow>,
  pair: Pair,
): number | null {
  const comesBefore = (visit: number, other: number): boolean => {
    const node = visit % nodeCount;
    const chain = at(chainOf, node);
    const length = at(chainStart, chain + 1) - at(chainStart, chain);
    const place = at(position, node) + Math.floor(visit / nodeCount) * length;
    return other !== visit && (pasts.get(other)?.[chain] ?? 0) >= place;
  };
  const last = candidates.filter((visit) => !candidates.some((other) => comesBefore(visit, other)));
  const ranks = new Set(pair.map((visit) => at(rankOf, visit % nodeCount)));
  return last.find((visit) => ranks.has(at(rankOf, visit % nodeCount))) ?? last[0] ?? null;
}

// A finding before findings of equal statements are joined and counterexamples are added. Its commands are still visits
// of nodes.

export interface RawFinding {
  readonly code: DiagnosticCode;
  readonly severity: "error" | "warning" | "note";
  readonly message: string;
  /** The visits involved; the finding is reported at the last. */
  readonly visits: readonly number[];
  /** The mistakes of equal statements that it stands for, if there are more than one. */
  readonly occurrences?: number;
  readonly memory: SharedMemory | null;
  readonly found: string;
  readonly expected: string;
  readonly help: string;
  readonly notes: readonly string[];
  /** The order that would repair it: both visits, in that order; null if no order does. */
  readonly edge: readonly [number, number] | null;
}

/*
 * An interleaving that exposes a race: everything that must precede the second command, then the second command, and
 * only then, in the machine's default order, the first. Its lines are steps, RANK:STREAM, and actions of callers
 * (src/machine/interleaving.ts); transfers are eager.
 */

/** What an interleaving runs: all the pasts, then the second of the two. */
interface InterleavingRequest {
  readonly first: number;
  readonly second: number;
  /** The past of each visit: of `second` and, if it is a transfer, of the participants whose data it needs. */
  readonly pasts: ReadonlyMap<number, PastRow>;
}

/** The visits whose pasts an interleaving needs; none if it cannot contain the second one. */
function visitsFor(graph: Graph, second: number): readonly number[] {
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
function interleavingText(graph: Graph, { first, second, pasts }: InterleavingRequest): string | null {
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
