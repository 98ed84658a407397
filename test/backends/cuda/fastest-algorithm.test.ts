/** Which of a GEMM's algorithms is chosen, with clocks and results of the test's own. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type AlgorithmChoice, createAlgorithmChooser } from "../../../src/backends/cuda/matmul/choose-algorithm.ts";
import { fastestAlgorithm } from "../../../src/backends/cuda/matmul/fastest-algorithm.ts";
import type { TrialTools } from "../../../src/backends/cuda/matmul/gemm-trial.ts";

interface Algorithm {
  /** Milliseconds of a run. */
  readonly time: number;
  /** Null for one that does not run. */
  readonly result: string | null;
}

function chosen(algorithms: readonly Algorithm[], clock = 0): number {
  return fastestAlgorithm({
    count: algorithms.length,
    resultOf: (algorithm) => {
      const { result = null } = algorithms[algorithm] ?? {};
      return result === null ? null : new TextEncoder().encode(result);
    },
    time: (algorithm, runs) => clock + runs * (algorithms[algorithm]?.time ?? 0),
  });
}

describe("of a GEMM's algorithms", () => {
  it("the fastest with the bits of the first is chosen", () => {
    const same = (time: number): Algorithm => ({ time, result: "a" });
    expect(chosen([same(3), same(2), same(1), same(2.5)])).toBe(2);
    expect(chosen([same(3), { time: 1, result: "b" }, same(2)])).toBe(2);
    expect(chosen([same(3), { time: 1, result: null }, { time: 1, result: "b" }])).toBe(0);
    expect(chosen([{ time: 3, result: null }, same(1)])).toBe(0);
    expect(chosen([same(3)])).toBe(0);
  });

  it("the first stays if another is hardly faster", () => {
    expect(
      chosen([
        { time: 1, result: "a" },
        { time: 0.995, result: "a" },
      ]),
    ).toBe(0);
    expect(
      chosen([
        { time: 1, result: "a" },
        { time: 0.98, result: "a" },
      ]),
    ).toBe(1);
  });

  it("short runs are timed in a row, beside which the clock's own time is little", () => {
    expect(
      chosen(
        [
          { time: 0.01, result: "a" },
          { time: 0.009, result: "a" },
        ],
        0.01,
      ),
    ).toBe(1);
  });
});

const folder = mkdtempSync(path.join(tmpdir(), "braid-gemms-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const matrix = { rows: 8, columns: 4, leading: 8, transposed: true, batchStride: 0 };
const algorithms = [1, 2, 3].map((byte) => new Uint8Array(64).fill(byte));
const choice: AlgorithmChoice = {
  layout: {
    dtype: "bfloat16",
    swapped: true,
    left: matrix,
    right: { ...matrix, transposed: false },
    result: { ...matrix, rows: 4 },
    hasBias: false,
    batchCount: 1,
    offsets: [],
  },
  alignments: [256, 256, 16],
  smCount: 0,
  algorithms,
  queueOf: () => () => 0,
};

/** On a GPU without memory, so that nothing can be tried. */
function chooserWithout(cacheFolder: string): (given: AlgorithmChoice) => number {
  const gpu = { name: "NVIDIA H200", smCount: 132, raw: { cuMemAlloc_v2: () => 2, cuMemFree_v2: () => 0 } };
  // oxlint-disable-next-line typescript/consistent-type-assertions -- what a trial without memory uses
  const tools = { gpu, staging: null, stream: 0 } as unknown as TrialTools;
  return createAlgorithmChooser({ ...tools, version: 130_100, cacheFolder });
}

describe("the algorithm of an earlier process", () => {
  /** As choose_gemm.py names it: test/python/test_choose_gemm.py has the same name. */
  const file = path.join(folder, "4dc98279f9e3e82263828518bbd83395f180ad952c4805439d0c35bc8e057c04.gemm");

  it("is used if the library still proposes it, and nothing is kept where nothing could be tried", () => {
    const choose = chooserWithout(folder);
    expect(choose(choice)).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    writeFileSync(file, algorithms[2] ?? "");
    expect(choose(choice)).toBe(2);
    expect(choose({ ...choice, smCount: 124 })).toBe(0);
    expect(choose({ ...choice, alignments: [16, 256, 16] })).toBe(0);
    writeFileSync(file, new Uint8Array(64).fill(9));
    expect(choose(choice)).toBe(0);
    writeFileSync(file, readFileSync(file).subarray(0, 3));
    expect(choose(choice)).toBe(0);
    // As in test_choose_gemm.py.
    const scaled = { left: "float8_e4m3fn", right: "float8_e5m2", vectors: true } as const;
    const ofScaled = { ...choice, layout: { ...choice.layout, scaled } };
    writeFileSync(
      path.join(folder, "4e46050b6f1a04e3aac0dce907107dc629e899b9b1d547f6fee6ce8bcf8feb83.gemm"),
      algorithms[1] ?? "",
    );
    expect(choose(ofScaled)).toBe(1);
    expect(choose({ ...ofScaled, layout: { ...ofScaled.layout, scaled: { ...scaled, vectors: false } } })).toBe(0);
    const blocks = {
      ...ofScaled,
      layout: { ...ofScaled.layout, scaled: { ...scaled, blocks: { left: 128, right: 1 } } },
    };
    expect(choose(blocks)).toBe(0);
    writeFileSync(
      path.join(folder, "302f9108eb3dbc7ade760e4465ecc2a95c82b938e9f4a4f668dbffc0a54b5f9a.gemm"),
      algorithms[2] ?? "",
    );
    expect(choose(blocks)).toBe(2);
  });
});
