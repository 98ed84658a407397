/** Dumps that name all their sizes: those of nvFuser's test, which take seconds to multiply. */
import { describe, it } from "vitest";
import { realDumps, writtenDumps } from "./dump-cases.ts";
import { expectDumpRuns } from "./run-dump.ts";

const dumps = [...realDumps, ...writtenDumps].filter(({ sizes }) => Object.keys(sizes).length === 0);

describe.each(dumps)("$file runs", (dump) => {
  it("with 1 and 3 streams, and computes what the Fusion does", async () => {
    await expectDumpRuns(dump);
  });
});
