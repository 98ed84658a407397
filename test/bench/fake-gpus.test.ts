/** `braid bench --on cuda`, with a process per rank on fake GPUs, and a stand-in for PyTorch. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeBench, fakeBench, obstacle } from "./fake-bench.ts";

if (obstacle !== null) console.log(`test/bench/fake-gpus is skipped: ${obstacle}`);

let fake: FakeBench;
beforeAll(async () => {
  if (obstacle === null) fake = await fakeBench(2);
}, 60_000);
afterAll(() => {
  if (obstacle === null) fake.remove();
});

describe.skipIf(obstacle !== null)("braid bench --on cuda", () => {
  it("times Braid's programs and PyTorch's on all ranks, and rank 0 tells", async () => {
    const { stdout, stderr } = await fake.bench(
      "tp-columnwise",
      "--on",
      "cuda",
      "--devices",
      "2",
      "--set",
      "size=8x4x4,dtype=bfloat16",
      "--repeat",
      "6",
      "--check",
      "--python",
      fake.python,
      "--json",
      "--impl",
      "braid",
      "--impl",
      "torch-nccl",
      "--impl",
      "torch-async-tp",
      "--impl",
      "xla",
      "--impl",
      "transformer-engine",
    );
    expect(stderr.trimEnd().split("\n")).toEqual([
      "1/1 tp-columnwise m 8 n 4 k 4 bfloat16: preparing",
      "1/1 tp-columnwise m 8 n 4 k 4 bfloat16: 6 contenders, 0 of 6 iterations",
      "1/1 tp-columnwise m 8 n 4 k 4 bfloat16: 6 contenders, 5 of 6 iterations",
    ]);
    const { machine, rows } = JSON.parse(stdout) as {
      readonly machine: { readonly device: string };
      readonly rows: readonly {
        readonly name: string;
        readonly partOfBound: number | null;
        readonly hostMicroseconds: number | null;
        readonly hostInRowMicroseconds: number | null;
        readonly failure: string | null;
        readonly figures: {
          readonly times: readonly number[];
          readonly overPyTorch: number | null;
          readonly overXla: number | null;
        } | null;
      }[];
    };
    expect(machine.device).toBe("Fake GPU, CUDA 13.0");
    expect(rows.map(({ name }) => name)).toEqual([
      "compute-only",
      "serial",
      "braid",
      "torch-nccl",
      "torch-async-tp",
      "xla",
      "transformer-engine",
    ]);
    for (const { figures, hostMicroseconds, hostInRowMicroseconds, partOfBound } of rows.slice(0, 6)) {
      expect(figures?.times).toHaveLength(6);
      expect(hostMicroseconds).toBeGreaterThan(0);
      expect(hostInRowMicroseconds).toBeGreaterThan(0);
      expect(partOfBound).toBeLessThanOrEqual(1);
    }
    // The slower of the ranks: 1.1 times what rank 0 says.
    expect(rows[3]?.figures?.times).toEqual(Array.from({ length: 6 }, () => 3 * 1.1));
    expect(rows[3]).toMatchObject({ hostMicroseconds: 10 * (3 * 1.1), hostInRowMicroseconds: (10 * (3 * 1.1)) / 20 });
    expect(rows[3]?.figures?.overPyTorch).toBeCloseTo(2 / 3, 12);
    expect(rows[3]?.figures?.overXla).toBeCloseTo(4 / 3, 12);
    expect(rows[6]).toMatchObject({ figures: null, failure: "not available here for tp-columnwise" });
  }, 120_000);
});
