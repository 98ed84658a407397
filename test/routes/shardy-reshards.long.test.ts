/** The values of Shardy's reshardings on many devices, and of all of them over peers' memory, which moves no more. */
import { describe, expect, it } from "vitest";
import { checked } from "./check-reshard.ts";
import { expectRatios, type Measured } from "./expect-ratios.ts";
import { devicesOf, measured } from "./reshard-program.ts";
import { quickDevices, shardyReshards } from "./shardy-reshards.ts";

const atMost = { mean: 1, worst: 1, above: 0, needless: 0 };

describe("Shardy's reshardings", () => {
  const rows: Measured[] = [];

  it.each(shardyReshards)("$name", async (move) => {
    const isQuick = devicesOf(move) <= quickDevices.values;
    const byNccl = isQuick ? measured(move, "nccl") : await checked(move, "nccl");
    rows.push({ move, ...byNccl });
    const inMemory = await checked(move, "cuda");
    expect(inMemory.bytes).toBeLessThanOrEqual(byNccl.bytes);
  });

  it("move little more than devices lack", () => {
    expect(rows).toHaveLength(shardyReshards.length);
    expectRatios(rows, atMost);
  });
});
