/** The annotated programs of the GPU self-test, on the CPU and its machine. */
import { describe, it } from "vitest";
import type { Fusion } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { annotatedCases } from "./reference/annotated-cases.ts";

describe.each(annotatedCases)("$name", ({ source, lowerings, runsOn }) => {
  it.each([2, 3].filter(runsOn))("on %i devices", async (devices) => {
    for (const lowering of lowerings) await expectOracle(source(devices, lowering) as Fusion, { devices, ...lowering });
  });
});
