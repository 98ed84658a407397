/** Every case of test/support/lowered-communications.ts is as many communications as the decision table says, and gives the oracle's result. */
import { describe, expect, it } from "vitest";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { devicesOf, loweredCommunications, loweredFusion } from "../support/lowered-communications.ts";

describe.each(loweredCommunications)("$name, shape $shape, $from.mesh to $to.mesh", (lowered) => {
  const devices = devicesOf(lowered);

  it(`is ${lowered.communications}`, () => {
    expect(collectivesOf(loweredFusion(lowered), devices)).toBe(lowered.communications);
  });

  it("gives the oracle's result", async () => {
    await expectOracle(loweredFusion(lowered), { devices });
  });
});
