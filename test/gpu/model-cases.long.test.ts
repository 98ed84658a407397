/** The models' cases of the GPU self-test, on the CPU and its machine. */
import { describe, it } from "vitest";
import { expectOracle } from "../support/expect-oracle.ts";
import { modelCases } from "./model-cases.ts";

describe.each(modelCases)("$name", ({ build }) => {
  it("equals the oracle", async () => {
    await expectOracle(build(), { devices: 1, rounds: true });
  });
});
