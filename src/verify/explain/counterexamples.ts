/**
 * The evidence of a finding: the last command that both of its commands come after, and an interleaving in which the
 * second runs before the first. It takes sweeps of its own, only for the findings that are shown.
 */
import { at } from "../../support/invariant.ts";
import { commonAncestors, type Pair } from "../order/ancestor.ts";
import { capturePasts } from "../order/captures.ts";
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
