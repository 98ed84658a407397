/** The table of regions in the words that the terminal and the page share. */
import { bytesText, percentText, timeText } from "../support/quantities.ts";
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
