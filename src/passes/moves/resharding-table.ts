/** What moves between devices, as rows of a table: for the command line, the report page and the playground. */
import type { Resharding } from "./list-reshardings.ts";

export const reshardingColumns = ["tensor", "collective", "along", "chunks", "bytes", "because"] as const;

/** `besideDump`: with the numbers that the dump has. */
export function reshardingCells(resharding: Resharding, besideDump = false): readonly string[] {
  const { tensor, name, collective, along, chunked, bytes, lacks, instead, reason } = resharding;
  const isMore = bytes !== null && lacks !== null && lacks < bytes;
  const size = `${text(bytes)}${isMore ? ` (lacks ${text(lacks)})` : ""}`;
  const dearer = instead === undefined ? "" : `; ${instead.collectives.join(", ")} would move ${text(instead.bytes)}`;
  const number = `T${tensor}`;
  return [
    name === undefined ? number : besideDump ? `${name} (${number})` : name,
    collective,
    along ?? "meshes",
    chunked ? "yes" : "no",
    size,
    `${reason}${dearer}`,
  ];
}

function text(bytes: number | null): string {
  return bytes?.toLocaleString("en-US") ?? "?";
}
