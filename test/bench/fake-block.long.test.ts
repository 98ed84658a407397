/** `braid bench block --on cuda`, with a process per rank on fake GPUs, and a stand-in for PyTorch. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeBench, fakeBench, obstacle } from "./fake-bench.ts";

if (obstacle !== null) console.log(`test/bench/fake-block is skipped: ${obstacle}`);

let fake: FakeBench;
beforeAll(async () => {
  if (obstacle === null) fake = await fakeBench(2);
}, 60_000);
afterAll(() => {
  if (obstacle === null) fake.remove();
});

describe.skipIf(obstacle !== null)("braid bench block --on cuda", () => {
  it("times a block beside PyTorch's, with the right results", async () => {
    const { stdout } = await fake.bench(
      "block",
      "--on",
      "cuda",
      "--devices",
      "2",
      "--set",
      "model=small-gpt,cut=tp-sp,pass=forward",
      "--repeat",
      "1",
      "--check",
      "--python",
      fake.python,
      "--json",
      "--impl",
      "braid;chunks=2",
      "--impl",
      "torch-nccl",
      "--impl",
      "torch-async-tp",
    );
    const { rows } = JSON.parse(stdout) as {
      readonly rows: readonly {
        readonly name: string;
        readonly partOfBound: number | null;
        readonly failure: string | null;
        readonly figures: { readonly overPyTorch: number | null } | null;
      }[];
    };
    expect(rows.map(({ name }) => name)).toEqual(["compute-only", "serial", "braid", "torch-nccl", "torch-async-tp"]);
    for (const { partOfBound, failure } of rows) {
      expect(failure).toBeNull();
      expect(partOfBound).toBeLessThanOrEqual(1);
    }
    expect(rows[3]?.figures?.overPyTorch).toBeCloseTo(2 / 3, 12);
  }, 120_000);
});
