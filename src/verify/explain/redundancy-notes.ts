/**
 * Statements that synchronize what is already in order. One wait of a loop may be redundant while another iteration
 * needs it, so a statement is named only if every one of its waits, on all ranks, adds no order.
 */
import { at } from "../../support/invariant.ts";
import type { RawFinding } from "./raw-finding.ts";
import { commandIndex, type Graph, nodeKinds } from "../order/graph.ts";
import { placeOf, placeText } from "./places.ts";
import { sweep } from "../order/sweep.ts";

export function redundancyNotes(graph: Graph): readonly RawFinding[] {
  const { nodeCount, kind } = graph;
  const redundant = idleWaits(graph);
  const idle = new Set(redundant);
  const needed = new Set<string>();
  for (let node = 0; node < nodeCount; node++) {
    if (kind[node] === nodeKinds.wait && !idle.has(node)) needed.add(statementKey(graph, node));
  }
  return redundant
    .filter((node) => isSynchronization(graph, node) && !needed.has(statementKey(graph, node)))
    .map((node): RawFinding => ({
      code: "redundant-synchronization",
      severity: "note",
      message: "a synchronization orders commands that are already ordered",
      visits: [node],
      memory: null,
      found: placeText(placeOf(graph, node)),
      expected: "synchronizations that add an order",
      help: "remove it: it costs two calls on the host and changes nothing",
      notes: [],
      edge: null,
    }));
}

/** Waits after which their stream comes after no more work than before, in the order of the first run. */
function idleWaits(graph: Graph): readonly number[] {
  const works = workCounts(graph);
  const workOf = (chain: number, position: number): number =>
    position === 0 ? 0 : at(works, at(graph.chainStart, chain) + position - 1);
  const idle: number[] = [];
  sweep(graph, 1, {
    waits: (node, known, told, from, position) => {
      const own = at(graph.chainOf, node);
      for (const [chain, reached] of known.entries()) {
        if (chain === own) continue;
        const learned = chain === from ? position : at(told, chain);
        if (workOf(chain, learned) > workOf(chain, reached)) return;
      }
      idle.push(node);
    },
  });
  return idle;
}

/** Along each chain, how many nodes so far do more than order others. */
function workCounts({ chains, chainStart, chainNodes, kind }: Graph): Int32Array {
  const counts = new Int32Array(chainNodes.length);
  for (const chain of chains.keys()) {
    let count = 0;
    for (let i = at(chainStart, chain); i < at(chainStart, chain + 1); i++) {
      const node = kind[at(chainNodes, i)];
      if (node !== nodeKinds.record && node !== nodeKinds.wait && node !== nodeKinds.signal) count++;
      counts[i] = count;
    }
  }
  return counts;
}

/** Waits of the host program. Those around transfers and copies are the recorder's. */
function isSynchronization(graph: Graph, node: number): boolean {
  const { origins } = at(graph.program.ranks, at(graph.rankOf, node));
  return /^(Synchronize|Wait)\b/.test(origins[commandIndex(graph, node)]?.statement ?? "");
}

function statementKey(graph: Graph, node: number): string {
  const { path, statement } = placeOf(graph, node);
  return `${path.join(".")} ${statement}`;
}
