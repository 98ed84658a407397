/**
 * The knowledge of certain nodes at their start, from a separate sweep. Only findings need it, so a correct Program
 * never pays for it.
 */
import { at } from "../../support/invariant.ts";
import type { Graph } from "./graph.ts";
import { sweep } from "./sweep.ts";

/** By chain, including its own: the number of nodes that have completed before the visit starts. */
export type Past = Int32Array;

export function capturePasts(graph: Graph, visits: ReadonlySet<number>): ReadonlyMap<number, Past> {
  const pasts = new Map<number, Past>();
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
export interface Orders {
  has(first: number, second: number): boolean;
}

export function captureOrders(graph: Graph, pairs: readonly (readonly [number, number])[]): Orders {
  const { chainOf, position: positionOf, nodeCount } = graph;
  const firsts = new Map<number, number[]>();
  for (const [first, second] of pairs) {
    const others = firsts.get(second);
    if (others === undefined) firsts.set(second, [first]);
    else others.push(first);
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
