/**
 * The communications of a Fusion's host programs over all ranks, each counted once: a rank lists those in which it
 * takes part.
 */
import { type Fusion, lower, type LowerOptions } from "@braid-compiler/braid";
import { isTeamCommunication, walk } from "../../src/host/traverse.ts";

/**
 * Kinds of communications with how many there are, in the order of their first appearance: `Allgather 1`, `Gather 3,
 * Scatter 1`.
 */
export function collectivesOf(fusion: Fusion, devices: number, options: Omit<LowerOptions, "rank"> = {}): string {
  const counts = new Map<string, number>();
  for (let rank = 0; rank < devices; rank++) {
    for (const statement of walk(lower(fusion, { ...options, rank }).body)) {
      if (!isTeamCommunication(statement)) continue;
      const type = statement.kind === "Communication" ? statement.type : statement.kind;
      counts.set(type, (counts.get(type) ?? 0) + 1 / statement.team.length);
    }
  }
  return [...counts].map(([kind, count]) => `${kind} ${Math.round(count)}`).join(", ");
}
