/** `overlap: false` (`--schedule overlap=false`): no loop over streams is left of an example, and its result is the same. */
import { describe, expect, it } from "vitest";
import { lower } from "@braid-compiler/braid";
import { isFusion } from "@braid-compiler/braid/internals";
import { walk } from "../../src/host/traverse.ts";
import { loadPattern, patternFiles } from "../support/example-program.ts";
import { expectOracle } from "../support/expect-oracle.ts";

describe.each(patternFiles)("%s", (name) => {
  it("runs without a loop", async () => {
    const example = await loadPattern(name);
    const small = Object.entries(example.defaults).map(
      ([name, value]) => [name, typeof value === "number" ? Math.min(value, 64) : value] as const,
    );
    const built = example.build({ devices: 4, params: Object.fromEntries(small) });
    // Hand-built programs are not lowered.
    if (!isFusion(built)) return;
    for (const backend of ["nccl", "cuda"] as const) {
      const kinds = walk(lower(built, { rank: 0, overlap: false, backend }).body).map(({ kind }) => kind);
      expect(kinds).not.toContain("ForLoop");
      expect(kinds).not.toContain("SetCurrentStream");
      await expectOracle(built, { devices: 4, overlap: false, backend });
    }
  });
});
