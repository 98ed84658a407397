/** nvFuser's tests on fake GPUs. Each process uses one Group for all tests. */
import { rmSync } from "node:fs";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulationObstacle } from "./emulate/compiler.ts";
import { buildFakes, type Fakes } from "./fake/build-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/backends/cuda/fake-gpu-reference is skipped: ${obstacle}`);

let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(3);
}, 60_000);
afterAll(() => {
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

describe.skipIf(obstacle !== null)("ranks on fake GPUs", () => {
  it("run nvFuser's tests one after the other in one Group, on meshes that leave a rank without work", async () => {
    const pattern =
      "Lower(Gather|Scatter|SendRecv)|Noncontig|Allgather_Non|StaticShape|ShareIpc|Pairwise|communications, (Gather|SendRecv)$";
    const { statuses, printed } = await runRanks(fakes, 3, "reference-rank.ts", pattern);
    const lines = printed.trim().split("\n");
    expect(lines.filter((line) => !line.startsWith("ok "))).toEqual([]);
    expect(lines).toHaveLength(22);
    expect(statuses).toEqual([0, 0, 0]);
  }, 120_000);

  it("run annotated programs with uneven and empty parts", async () => {
    const { statuses, printed } = await runRanks(
      fakes,
      3,
      "reference-rank.ts",
      "^annotated, (a ring of uneven|an MLP in one loop, uneven|an uneven reduce|empty)",
    );
    const lines = printed.trim().split("\n");
    expect(lines.filter((line) => !line.startsWith("ok "))).toEqual([]);
    expect(lines).toHaveLength(4);
    expect(statuses).toEqual([0, 0, 0]);
  }, 120_000);
});
