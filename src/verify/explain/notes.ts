/** What a correct Program could do better. Notes never make a Program wrong. */
import type { RawFinding } from "./raw-finding.ts";
import type { Graph } from "../order/graph.ts";
import { leakNotes } from "./leak-notes.ts";
import { redundancyNotes } from "./redundancy-notes.ts";
import type { RegionTable } from "../check/region-table.ts";
import { serializationNotes } from "./serialization-notes.ts";

export function noteFindings(graph: Graph, table: RegionTable): readonly RawFinding[] {
  return [...redundancyNotes(graph), ...serializationNotes(graph, table), ...leakNotes(graph)];
}
