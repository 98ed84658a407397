/** An executor's memory budget on fake GPUs, where all ranks have to release the same Programs at the same point. */
import { rmSync } from "node:fs";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulationObstacle } from "./emulate/compiler.ts";
import { buildFakes, type Fakes } from "./fake/build-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/backends/cuda/memory-budget is skipped: ${obstacle}`);

let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(3);
}, 60_000);
afterAll(() => {
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

describe.skipIf(obstacle !== null)("a budget for one Program", () => {
  it("gives right results on 3 ranks, which prepare again what they released", async () => {
    const { end, printed } = await runRanks(fakes, 3, "budget-rank.ts");
    expect([end, printed.trim()]).toEqual([null, '{"programs":1,"released":4}']);
  }, 60_000);
});
