/** The cases of attention of the GPU self-test, on the CPU: as its kernel, and as the ops that GPUs run. */
import { describe, it } from "vitest";
import { expectOracle } from "../support/expect-oracle.ts";
import { attentionCases, decodeCases } from "./attention-cases.ts";

describe.each([...attentionCases, ...decodeCases])("$name", ({ build }) => {
  it.each(["fused", "ops"] as const)("equals the oracle, %s", async (attention) => {
    await expectOracle(build(), { devices: 1, rounds: true, machineAlone: true, attention });
  });
});
