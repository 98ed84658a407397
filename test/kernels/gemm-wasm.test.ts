/**
 * The WebAssembly matrix kernels: the checked-in module is the assembled text, and their parts agree with src/numerics.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { generate, generatedFile } from "../../scripts/build-wasm.ts";
import { packings, roundPacked } from "../../src/numerics/convert.ts";
import { gemmWasm } from "../../src/kernels/gemm/gemm-wasm.ts";
import { decodeBase64 } from "../../src/kernels/gemm/gemm.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { dot } from "./reference.ts";
import { operand, runKernel } from "./run-kernel.ts";
import { firstDifference, randomValues } from "./values.ts";

it("is generated from scripts/gemm-wat.ts as it stands", async () => {
  expect(readFileSync(generatedFile, "utf8")).toBe(await generate());
});

it("is small enough to be compiled synchronously by browsers, and decodes as elsewhere", () => {
  for (const text of [gemmWasm.shared, gemmWasm.unshared]) {
    const bytes = decodeBase64(text);
    expect(Buffer.from(bytes).equals(Buffer.from(text, "base64"))).toBe(true);
    expect(bytes.length).toBeLessThan(8192);
  }
});

describe.each([
  { dtype: "half", widen: packings.half.decode, round: (x: number) => roundPacked("half", x) },
  { dtype: "bfloat16", widen: packings.bfloat16.decode, round: (x: number) => roundPacked("bfloat16", x) },
] as const)("conversions of $dtype", ({ dtype, widen, round }) => {
  const every = Array.from({ length: 65536 }, (_, word) => widen(word));

  // One column of b packs a line by line, a row of it as vectors.
  it.each([
    { as: "rows", a: [65536, 1], b: [1, 1], c: [65536, 1] },
    { as: "columns", a: [1, 1], b: [1, 65536], c: [1, 65536] },
  ])("widens and narrows every word, as $as", ({ as, a, b, c }) => {
    const inputs = [operand(dtype, a), operand(dtype, b)];
    const values = as === "rows" ? [every, [1]] : [[1], every];
    const [found] = runKernel({ kind: "matmul", inputs, outputs: [operand(dtype, c)] }, values);
    // Sums start from +0.
    const expected = every.map((x) => (x === 0 ? 0 : x));
    expect(firstDifference(found ?? [], expected)).toBeNull();
  });

  it("rounds products as convert.ts does", () => {
    const random = createRandom(11);
    const words = Array.from({ length: 512 }, () => widen(random.integer(65536)));
    const [a, b] = [words.slice(0, 256), words.slice(256)];
    const inputs = [operand(dtype, [256, 1]), operand(dtype, [1, 256])];
    const [found] = runKernel({ kind: "matmul", inputs, outputs: [operand(dtype, [256, 256])] }, [a, b]);
    const expected = a.flatMap((x) => b.map((y) => round(Math.fround(0 + Math.fround(x * y)))));
    expect(firstDifference(found ?? [], expected)).toBeNull();
  });
});

describe("several blocks along every axis", () => {
  const [m, n, k] = [250, 560, 270];
  const sampled = [
    [0, 0],
    [0, n - 1],
    [m - 1, 0],
    [m - 1, n - 1],
    [243, 519],
    [244, 520],
    [245, 527],
    [247, 528],
    [100, 550],
  ] as const;

  it.each(["float", "bfloat16", "double"] as const)("%s, with a bias", (dtype) => {
    const random = createRandom(5);
    const x = randomValues(dtype, m * k, random).map(Number);
    const weight = randomValues(dtype, n * k, random).map(Number);
    const bias = randomValues(dtype, n, random).map(Number);
    const inputs = [operand(dtype, [m, k]), operand(dtype, [n, k]), operand(dtype, [n])];
    const [found] = runKernel({ kind: "linear", inputs, outputs: [operand(dtype, [m, n])] }, [x, weight, bias]);
    for (const [row, column] of sampled) {
      const pairs = Array.from({ length: k }, (_, i) => [at(x, row * k + i), at(weight, column * k + i)] as const);
      expect(at(found ?? [], row * n + column)).toBe(dot(dtype, pairs, at(bias, column)));
    }
  });
});

describe("few rows: b is read in place", () => {
  it.each([1, 2, 3, 4, 5])("%i rows give the bits of the same rows among more", (rows) => {
    const random = createRandom(rows);
    const [m, n, k] = [9, 43, 300];
    for (const dtype of ["float", "int64"] as const) {
      const a = randomValues(dtype, m * k, random);
      const b = randomValues(dtype, k * n, random);
      const product = (height: number): ReturnType<typeof runKernel> =>
        runKernel(
          {
            kind: "matmul",
            inputs: [operand(dtype, [height, k]), operand(dtype, [k, n])],
            outputs: [operand(dtype, [height, n])],
          },
          [a.slice(0, height * k), b],
        );
      const [part] = product(rows);
      const [whole] = product(m);
      expect(firstDifference(part ?? [], (whole ?? []).slice(0, rows * n))).toBeNull();
    }
  });
});
