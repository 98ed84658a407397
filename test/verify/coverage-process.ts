/** Prints the gap that two columns of a million rows leave, in a process whose heap holds no object for each row. */
import { writeSync } from "node:fs";
import type { BufferId } from "../../src/commands/buffer.ts";
import { canonicalRegion, type Region } from "../../src/commands/region.ts";
import { makeId } from "../../src/support/invariant.ts";
import { gapOf } from "./gap-of.ts";

const buffer = makeId<BufferId>(0);
const rows = 1_000_000;
const column = (first: number, count: number): Region =>
  canonicalRegion(buffer, 4 * first, [{ count: rows, stride: 16 }], 4 * count);
writeSync(1, JSON.stringify(gapOf([canonicalRegion(buffer, 0, [], 16 * rows), column(0, 2), column(1, 2)])));
