/**
 * Statements that synchronize what is in order already. One wait of a loop may be redundant while another iteration needs it, so a statement is
 * named only if every wait of it, on all ranks, tells its stream nothing.
 */
import { at } from "../support/invariant.ts";
import type { Draft } from "./draft.ts";
import { commandIndex, type Graph, nodeKinds } from "./graph.ts";
import { placeOf, placeText } from "./places.ts";

export function redundancyNotes(graph: Graph, redundant: readonly number[]): readonly Draft[] {
  const { nodeCount, kind } = graph;
  const idle = new Set(redundant);
  const needed = new Set<string>();
  for (let node = 0; node < nodeCount; node++) {
    if (kind[node] === nodeKinds.wait && !idle.has(node)) needed.add(statementKey(graph, node));
  }
  return redundant
    .filter((node) => isSynchronization(graph, node) && !needed.has(statementKey(graph, node)))
    .map((node): Draft => ({
      code: "redundant-synchronization",
      severity: "note",
      message: "a synchronization orders what has an order already",
      visits: [node],
      memory: null,
      found: placeText(placeOf(graph, node)),
      expected: "synchronizations that order something",
      help: "leave it out: it costs two calls on the host and changes nothing",
      notes: [],
      edge: null,
    }));
}

/** Waits that stand in the host program; those around transfers and copies are the recorder's. */
function isSynchronization(graph: Graph, node: number): boolean {
  const { origins } = at(graph.program.ranks, at(graph.rankOf, node));
  return /^(Synchronize|Wait)\b/.test(origins[commandIndex(graph, node)]?.statement ?? "");
}

function statementKey(graph: Graph, node: number): string {
  const { path, statement } = placeOf(graph, node);
  return `${path.join(".")} ${statement}`;
}
