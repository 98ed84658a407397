/** The table of regions in the words that the terminal and the page share. */
import { bytesText, percentText, timeText } from "../support/quantities.ts";
import { shortStatement } from "../commands/short-statement.ts";
import type { RegionRow } from "./region-rows.ts";

export interface RegionTable {
  /** Of the cells, without the region's statement. */
  readonly columns: readonly string[];
  readonly cellsOf: (row: RegionRow) => readonly string[];
}

/** Columns of bytes that no region has are left out. */
export function regionTable(rows: readonly RegionRow[]): RegionTable {
  const moved = (["sent", "received", "transferred"] as const).filter((key) => rows.some((row) => row[key] > 0));
  return {
    columns: ["chunks", "streams", "GEMMs", ...moved, "communication", "hidden", "exposed"],
    cellsOf: (row) => [
      row.isLoop ? String(row.chunks) : "no loop",
      String(row.streams),
      timeText(row.gemms),
      ...moved.map((key) => bytesText(row[key])),
      timeText(row.communication),
      row.hidden === null ? "" : percentText(row.hidden),
      timeText(row.exposed),
    ],
  };
}

const communication = /^Communication \d+ \(type=(\w+),.* input=(T\d+).*, output=(T\d+)\b.*\)$/u;

/** The region's statement; a communication as `T3 = Allgather(T2)`. `named`: puts the user's names for numbers. */
export function regionText({ statement }: RegionRow, named: (text: string) => string): string {
  return named(shortStatement(statement).replace(communication, "$3 = $1($2)")).replaceAll(/\s+,/gu, ",");
}
