/** Programs on fake GPUs whose cuBLASLt computes GEMMs, with what is prepared for it: copies of scales, biases, addends. */
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulationObstacle } from "./emulate/compiler.ts";
import { buildFakes, type Fakes } from "./fake/build-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/backends/cuda/fake-cublaslt is skipped: ${obstacle}`);

let fakes: Fakes;
beforeAll(() => {
  if (obstacle !== null) return;
  const built = buildFakes(2);
  fakes = { ...built, env: { ...built.env, FAKE_CUBLASLT: "1" } };
}, 60_000);
afterAll(() => {
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

describe.skipIf(obstacle !== null)("ranks on fake GPUs with cuBLASLt", () => {
  it.each([
    { script: "rank.ts", programs: 17 },
    { script: "library-rank.ts", programs: 8 },
  ])(
    "run the programs of $script with the oracle's results",
    async ({ script, programs }) => {
      const { statuses, printed } = await runRanks(fakes, 2, script);
      const lines = printed.trim().split("\n");
      expect(lines.filter((line) => !line.endsWith(": ok"))).toEqual([]);
      expect(lines).toHaveLength(programs);
      expect(statuses).toEqual([0, 0]);
      expect(readFileSync(path.join(fakes.folder, "calls"), "utf8")).toContain("cublasLtMatmul");
    },
    240_000,
  );
});
