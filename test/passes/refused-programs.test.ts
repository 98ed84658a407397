/** Programs that passes reject, by the page that says so: the alternative gives the oracle's result. */
import { describe, expect, it } from "vitest";
import { type Fusion, lower, type LowerOptions } from "@braid-compiler/braid";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { checked, convertOpToCommunication, streamParallelType } from "./refused-programs.ts";

const pages = {
  "stream-loops": streamParallelType,
  README: checked,
  routes: convertOpToCommunication,
} as const;

function lowered(fusion: () => Fusion, devices: number, options?: LowerOptions): void {
  for (let rank = 0; rank < devices; rank++) lower(fusion(), { ...options, rank });
}

describe.each(Object.entries(pages))("%s", (_, programs) => {
  describe.each(programs)("$what", ({ refused, rewrites, devices, code }) => {
    it("is refused", () => {
      for (const { fusion, options } of refused) {
        expect(diagnosticOf(() => lowered(fusion, devices, options)).code).toBe(code);
      }
    });

    it("has a rewrite that works", async () => {
      for (const { fusion, options } of rewrites) await expectOracle(fusion(), { devices, ...options });
    });
  });
});
