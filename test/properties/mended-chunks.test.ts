/** Chunks of shares that random ones have shrunk to where something was wrong. */
import { it } from "vitest";
import { chunkedFusion, gatheredMlp } from "../support/chunked-fusions.ts";
import { expectOracle } from "../support/expect-oracle.ts";

it.each([
  { devices: 3, chunks: 2, rows: 2 },
  { devices: 4, chunks: 2, rows: 2 },
])(
  "a gather of chunks of one row in $rows rows of $devices devices knows its chunk",
  async ({ devices, chunks, rows }) => {
    const { build } = chunkedFusion("gathered MLP", devices, gatheredMlp(rows, chunks));
    for (const streams of [1, 4]) await expectOracle(build(), { devices, streams });
  },
);
