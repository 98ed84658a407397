/**
 * Joins findings of the same code and statements into one, with their number. A loop with a missing synchronization is
 * then one finding instead of one per iteration and rank. Causes come before their consequences: first inputs that the
 * caller may overwrite, then lifetimes, then conflicts across runs.
 */
import type { DiagnosticCode } from "../../diagnostics/codes.ts";
import { at } from "../../support/invariant.ts";
import type { Finding, SharedMemory } from "../finding.ts";
import { capturePasts, type PastRow, visitAt } from "../order/sweep.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import { interleavingText, visitsFor } from "./interleaving-text.ts";
import { diagnosticPlace, placeOf, placeText } from "./places.ts";

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
