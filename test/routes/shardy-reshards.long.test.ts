/** The values of Shardy's reshardings on many devices, and of all of them over peers' memory, which moves no more. */
import { describe, expect, it } from "vitest";
import { checked, devicesOf, measured } from "./reshard-program.ts";
import { fewDevices, shardyReshards } from "./shardy-reshards.ts";

describe("Shardy's reshardings", () => {
  it.each(shardyReshards.filter((move) => devicesOf(move) > fewDevices))("$name, by NCCL", async (move) => {
    await checked(move, "nccl");
  });

  it.each(shardyReshards)("$name, in peers' memory", async (move) => {
    const { bytes } = await checked(move, "cuda");
    expect(bytes).toBeLessThanOrEqual(measured(move, "nccl").bytes);
  });
});
