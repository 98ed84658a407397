/** What a correct Program could do better. Notes never make a Program wrong. */
import type { Draft } from "./draft.ts";
import type { Graph } from "../order/graph.ts";
import { leakNotes } from "./leak-notes.ts";
import { redundancyNotes } from "./redundancy-notes.ts";
import type { RegionTable } from "../check/region-table.ts";
import { serializationNotes } from "./serialization-notes.ts";

export function noteDrafts(graph: Graph, table: RegionTable): readonly Draft[] {
  return [...redundancyNotes(graph), ...serializationNotes(graph, table), ...leakNotes(graph)];
}
