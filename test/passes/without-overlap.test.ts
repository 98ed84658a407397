/** `overlap: false` (`--no-overlap`): no loop over streams is left of an example, and its result is the same. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { isFusion, isProgramFile, lower } from "braid";
import { walk } from "../../src/host/traverse.ts";
import { expectOracle } from "../support/expect-oracle.ts";

const folder = path.resolve(import.meta.dirname, "../../examples");
const names = readdirSync(folder).map((file) => path.basename(file, ".ts"));

describe.each(names)("%s", (name) => {
  it("runs without a loop", async () => {
    const { default: example } = (await import(path.join(folder, `${name}.ts`))) as { readonly default: unknown };
    if (!isProgramFile(example)) throw new Error(`${name} is no program`);
    const small = Object.entries(example.defaults).map(([size, value]) => [size, Math.min(value, 64)] as const);
    const built = example.build({ devices: 4, params: Object.fromEntries(small) });
    // What is built by hand is not lowered.
    if (!isFusion(built)) return;
    for (const backend of ["nccl", "cuda"] as const) {
      const kinds = walk(lower(built, { rank: 0, overlap: false, backend }).body).map(({ kind }) => kind);
      expect(kinds).not.toContain("ForLoop");
      expect(kinds).not.toContain("SetCurrentStream");
      await expectOracle(built, { devices: 4, overlap: false, backend });
    }
  });
});
