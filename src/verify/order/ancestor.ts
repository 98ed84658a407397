/**
 * The nearest common ancestor of two unordered nodes: the last node that both come after. Candidates are, per chain,
 * the last node in both pasts. The nearest is one that no other candidate comes after, preferably on the rank of one of
 * the two.
 */
import { at } from "../../support/invariant.ts";
import { capturePasts, type Past, visitAt } from "./captures.ts";
import type { Graph } from "./graph.ts";

export type Pair = readonly [number, number];

/** Ancestors of pairs of visits; null if the two have no common past. */
export function commonAncestors(graph: Graph, pairs: readonly Pair[]): readonly (number | null)[] {
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
