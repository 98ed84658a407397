/**
 * What is known when certain nodes start, from a separate sweep: only findings need it, so a correct Program never pays
 * for it.
 */
import { at } from "../../support/invariant.ts";
import type { Graph } from "./graph.ts";
import { sweep } from "./sweep.ts";

/** By chain: how many nodes have completed before the visit starts, its own chain included. */
export type Past = Int32Array;

export function capturePasts(graph: Graph, visits: ReadonlySet<number>): ReadonlyMap<number, Past> {
  const pasts = new Map<number, Past>();
  sweep(graph, 2, {
    every: true,
    starts: (_node, visit, chain, position, known) => {
      if (!visits.has(visit)) return;
      const past = known.slice();
      past[chain] = position - 1;
      pasts.set(visit, past);
    },
  });
  return pasts;
}

/** The visit at a position of a chain, both over two runs and from 1. */
export function visitAt({ chainStart, chainNodes, nodeCount }: Graph, chain: number, position: number): number {
  const [start, end] = [at(chainStart, chain), at(chainStart, chain + 1)];
  const length = end - start;
  const run = Math.floor((position - 1) / length);
  return at(chainNodes, start + ((position - 1) % length)) + run * nodeCount;
}
