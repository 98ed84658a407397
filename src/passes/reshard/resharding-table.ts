/** What moves between devices, as rows of a table: for the command line, the report page and the playground. */
import type { Resharding } from "./list-reshardings.ts";

export const reshardingColumns = ["tensor", "collective", "along", "chunks", "bytes", "because"] as const;

export function reshardingCells({ tensor, collective, along, chunked, bytes, reason }: Resharding): readonly string[] {
  const size = bytes?.toLocaleString("en-US") ?? "?";
  return [`T${tensor}`, collective, along ?? "meshes", chunked ? "yes" : "no", size, reason];
}
