/** Schedules that are chosen by region keep the oracle's result. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseProfile } from "../../../src/simulate/parse-profile.ts";
import { choose } from "../../../src/tune/choose/choose.ts";
import { expectOracle } from "../../support/expect-oracle.ts";
import { gatherAndScatter, pairs } from "./pairs.ts";

const file = new URL("../../../profiles/2xH200.json", import.meta.url);
const profile = parseProfile(readFileSync(file, "utf8"), "2xH200");

it("keeps the oracle's result", async () => {
  const constant = (microseconds: number) => [1, 1e9].map((bytes) => ({ bytes, microseconds }));
  const slow = {
    ...profile,
    peerCopies: constant(1),
    transfers: profile.transfers.map((each) => ({ ...each, timings: constant(900) })),
  };
  for (const [fusion, insertReshardingAfter] of [
    [pairs(2, 8, [4, 6, 4, 6], "float"), false],
    [gatherAndScatter(2, 8, 4), true],
  ] as const) {
    const options = { devices: 2, insertReshardingAfter };
    const { chosen, reason } = choose(fusion, { ...options, verify: "off" }, slow);
    expect(chosen.name, reason).toBe("by region");
    await expectOracle(fusion, { ...options, machineAlone: true, schedule: "auto", profile: slow });
  }
});
