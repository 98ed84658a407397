/** The reshardings of the GPU self-test, on the CPU and its machine; test/routes has the other programs. */
import { describe, it } from "vitest";
import type { Fusion } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { moveCases } from "./reference/route-cases.ts";

const devices = 4;

describe.each(moveCases.filter(({ runsOn }) => runsOn(devices)))("$name", ({ source, lowerings }) => {
  it("gives the oracle's result in every idiom", async () => {
    for (const lowering of lowerings) {
      await expectOracle(source(devices, lowering) as Fusion, { devices, ...lowering, machineAlone: true });
    }
  });
});
