/** Parts of unequal lengths on fake GPUs: no launch of 0 blocks, no call of NCCL for 0 elements. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { unevenFusions } from "../../support/uneven-fusions.ts";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const fakes = ownFakes(3);

describe.skipIf(obstacle !== null)("ranks on fake GPUs", () => {
  it("run programs whose parts are shorter or empty, with the oracle's results", async () => {
    const { statuses, printed } = await runRanks(fakes(), 3, "uneven-rank.ts");
    const lines = printed.trim().split("\n");
    expect(lines.filter((line) => !line.endsWith(": ok"))).toEqual([]);
    expect(lines).toHaveLength((Object.keys(unevenFusions).length * 4 * 3) / 2);
    expect(statuses).toEqual([0, 0, 0]);
    expect(readFileSync(path.join(fakes().folder, "calls"), "utf8")).toContain("cuGraphLaunch");
  }, 300_000);
});
