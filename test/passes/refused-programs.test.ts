/**
 * Every row of the tables of programs that passes reject: the program is rejected, the alternative gives the oracle's
 * result, and the page has the row.
 */
import { readFileSync } from "node:fs";
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

/** The first two cells of every row of the tables under the heading "Refused". */
function rowsOf(page: string): readonly string[] {
  const text = readFileSync(new URL(`../../docs/passes/${page}.md`, import.meta.url), "utf8");
  const [, refused = ""] = text.split("\n## Refused\n");
  return [...refused.matchAll(/^\| (?!what|---)(?<what>.*?) *\| (?<instead>.*?) *\|$/gmu)].map(
    ({ groups }) => `${groups?.["what"]} | ${groups?.["instead"]}`,
  );
}

function lowered(fusion: () => Fusion, devices: number, options?: LowerOptions): void {
  for (let rank = 0; rank < devices; rank++) lower(fusion(), { ...options, rank });
}

describe.each(Object.entries(pages))("%s", (page, programs) => {
  it("the page has a row for each, and no other", () => {
    expect(rowsOf(page)).toEqual(programs.map(({ what, instead }) => `${what} | ${instead}`));
  });

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
