/**
 * What passes remember of a Fusion: under any options, in any order, lowering makes what it makes of a Fusion that no
 * pass has seen; and a Fusion is not lowered again for options that no pass on Fusions reads.
 */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Fusion, lower, type LowerOptions, print } from "@braid-compiler/braid";
import { isFusion } from "@braid-compiler/braid/internals";
import { decomposedData } from "../../src/compile/lower.ts";
import { exampleFusion, loadPattern, patternFiles } from "../support/example-program.ts";
import { everyNth } from "../support/suite.ts";

const asked: readonly LowerOptions[] = [
  {},
  { overlap: false },
  { deviceLoops: true, backend: "cuda" },
  { backend: "cuda", p2p: "broadcast" },
  { overlap: false, deviceLoops: true, backend: "cuda" },
  { p2p: "linear" },
  { insertReshardingAfter: true },
  { nvfuserLimits: true },
  { propagate: false },
  { attention: "ops" },
  { disablePass: ["fold-permutes", "place-scalars"] },
  { disablePass: ["insert-routes"] },
  {},
];

function outcome(source: Pick<Fusion, "data">, options: LowerOptions): string {
  try {
    return print(lower(source, options));
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return JSON.stringify(error.diagnostics);
  }
}

function expectAsAnew(fusion: Fusion, inTurn: readonly LowerOptions[] = asked): void {
  for (const [i, options] of inTurn.entries()) {
    const anew = { data: () => ({ ...fusion.data() }) };
    const given = { ...options, rank: i % 2 };
    expect(outcome(fusion, given)).toBe(outcome(anew, given));
  }
}

describe.each(patternFiles)("%s", (name) => {
  it("is lowered as a Fusion that no pass has seen", async () => {
    const { build, defaults } = await loadPattern(name);
    const built = build({ devices: 4, params: defaults });
    if (isFusion(built)) expectAsAnew(built);
  });
});

it("lowers layers of Llama as a Fusion that no pass has seen", async () => {
  expectAsAnew(await exampleFusion("hosts/llama.ts", 4, { LAYERS: 1, BACKWARD: 1 }), everyNth(asked, 3));
});

it("runs no pass on Fusions again for options that none reads", async () => {
  const fusion = await exampleFusion("hosts/llama.ts", 4, { LAYERS: 1 });
  const first = decomposedData(fusion, { backend: "cuda", protocol: "get" });
  const again = decomposedData(fusion, { backend: "cuda", protocol: "put", shrink: false });
  expect(again.decomposed).toBe(first.decomposed);
  expect(decomposedData(fusion, { attention: "ops" }).decomposed).not.toBe(first.decomposed);
});
