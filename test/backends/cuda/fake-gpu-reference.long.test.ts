/** nvFuser's tests on fake GPUs. Each process uses one Group for all tests. */
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const fakes = ownFakes(3);

describe.skipIf(obstacle !== null)("ranks on fake GPUs", () => {
  it("run nvFuser's tests one after the other in one Group, on meshes that leave a rank without work", async () => {
    const pattern =
      "Lower(Gather|Scatter|SendRecv)|Noncontig|Allgather_Non|StaticShape|ShareIpc|Pairwise|communications, (Gather|SendRecv)$";
    const { statuses, printed } = await runRanks(fakes(), 3, "reference-rank.ts", pattern);
    const lines = printed.trim().split("\n");
    expect(lines.filter((line) => !line.startsWith("ok "))).toEqual([]);
    expect(lines).toHaveLength(22);
    expect(statuses).toEqual([0, 0, 0]);
  }, 120_000);

  it("run annotated programs with uneven and empty parts", async () => {
    const { statuses, printed } = await runRanks(
      fakes(),
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
