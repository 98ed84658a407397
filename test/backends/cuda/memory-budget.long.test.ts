/** An executor's memory budget on fake GPUs, where all ranks have to release the same Programs at the same point. */
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const fakes = ownFakes(3);

describe.skipIf(obstacle !== null)("a budget for one Program", () => {
  it("gives right results on 3 ranks, which prepare again what they released", async () => {
    const { end, printed } = await runRanks(fakes(), 3, "budget-rank.ts");
    expect([end, printed.trim()]).toEqual([null, '{"programs":1,"released":4}']);
  }, 60_000);
});
