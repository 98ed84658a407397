/**
 * The evidence for a finding: the last command that precedes both of its commands, and an interleaving in which the
 * second runs before the first. It takes separate sweeps, and only for findings that are shown.
 */
import { at } from "../../support/invariant.ts";
import { capturePasts, type Past, visitAt } from "../order/captures.ts";
import type { Graph } from "../order/graph.ts";
import { interleavingText, visitsFor } from "./interleaving-text.ts";

export interface Counterexample {
  /** The visit of the nearest common ancestor. */
  readonly ancestor: number | null;
  readonly interleaving: string | null;
}

/** For pairs of visits in their intended order. */
export function counterexamples(graph: Graph, pairs: readonly Pair[]): readonly Counterexample[] {
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

function candidatesOf(graph: Graph, pasts: ReadonlyMap<number, Past>, [a, b]: Pair): readonly number[] {
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
  pasts: ReadonlyMap<number, Past>,
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
