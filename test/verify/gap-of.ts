/** The gap of a read among writes. */
import { type Region, regionBytes } from "../../src/commands/region.ts";
import { findGap, type Gap } from "../../src/verify/check/coverage.ts";
import { overlapsOf } from "../../src/verify/check/region-table.ts";

/** The first of the regions is read, the others have been written. */
export function gapOf(regions: readonly Region[]): Gap | null {
  const table = { regions, sizes: Float64Array.from(regions, regionBytes), ...overlapsOf(regions) };
  return findGap(table, 0, (other) => other > 0);
}
