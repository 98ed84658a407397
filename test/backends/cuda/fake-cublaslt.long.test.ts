/** Programs on fake GPUs whose cuBLASLt computes GEMMs, with what is prepared for it: copies of scales, biases, addends. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const fakes = ownFakes(2, { FAKE_CUBLASLT: "1" });

describe.skipIf(obstacle !== null)("ranks on fake GPUs with cuBLASLt", () => {
  it.each([
    { script: "rank.ts", programs: 17 },
    { script: "library-rank.ts", programs: 8 },
  ])(
    "run the programs of $script with the oracle's results",
    async ({ script, programs }) => {
      const { statuses, printed } = await runRanks(fakes(), 2, script);
      const lines = printed.trim().split("\n");
      expect(lines.filter((line) => !line.endsWith(": ok"))).toEqual([]);
      expect(lines).toHaveLength(programs);
      expect(statuses).toEqual([0, 0]);
      expect(readFileSync(path.join(fakes().folder, "calls"), "utf8")).toContain("cublasLtMatmul");
    },
    240_000,
  );
});
