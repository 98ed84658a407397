/** Linears of 8-bit floats: their products against sums in double. */
import { DeviceMesh, float8Linear, Fusion, gradients, Tensor } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { type Float8Recipe, float8Recipes } from "../../../src/ir/fusion-data.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at } from "../../../src/support/invariant.ts";
import { expectOracle } from "../../support/expect-oracle.ts";
import { everyNth, runs } from "../../support/suite.ts";
import { type Matrix, numbersOf, wave } from "./waves.ts";

const turned = (a: Matrix): Matrix => at(a, 0).map((_, column) => a.map((row) => at(row, column)));

/** Rows and columns of a block with one scale. */
type Block = readonly [rows: number, columns: number];

const blocks: Readonly<Record<Float8Recipe, readonly [ofRows: Block, ofWeight: Block]>> = {
  rowwise: [
    [1, Infinity],
    [1, Infinity],
  ],
  tensorwise: [
    [Infinity, Infinity],
    [Infinity, Infinity],
  ],
  blockwise: [
    [1, 128],
    [128, 128],
  ],
};

/** The numbers that are left, in double. */
function rounded(a: Matrix, [rows, columns]: Block, dtype: DType): Matrix {
  const most = dtype === "float8_e5m2" ? 57_344 : 448;
  const peaks = new Map<string, number>();
  const blockOf = (i: number, j: number): string => `${Math.floor(i / rows)} ${Math.floor(j / columns)}`;
  a.forEach((row, i) => {
    row.forEach((each, j) => peaks.set(blockOf(i, j), Math.max(peaks.get(blockOf(i, j)) ?? 0, Math.abs(each))));
  });
  return a.map((row, i) => {
    const scales = row.map((_, j) => Math.fround((peaks.get(blockOf(i, j)) ?? NaN) / most));
    const scaled = row.map((each, j) => Math.min(most, Math.max(-most, Math.fround(each / at(scales, j)))));
    return numbersOf(Tensor.from(scaled, dtype)).map((each, j) => each * at(scales, j));
  });
}

/** a b^T */
const product = (a: Matrix, b: Matrix): Matrix =>
  a.map((row) =>
    b.map((other) => {
      let total = 0;
      for (let i = 0; i < row.length; i++) total += (row[i] ?? NaN) * (other[i] ?? NaN);
      return total;
    }),
  );

/** a b^T, the depth of which is cut in parts with scales of their own. */
function productInParts(a: Matrix, b: Matrix, parts: number, round: (a: Matrix, of: "a" | "b") => Matrix): Matrix {
  const size = at(a, 0).length / parts;
  const part = (matrix: Matrix, i: number): Matrix => matrix.map((row) => row.slice(i * size, (i + 1) * size));
  const products = Array.from({ length: parts }, (_, i) => product(round(part(a, i), "a"), round(part(b, i), "b")));
  return products.reduce((sum, other) => sum.map((row, i) => row.map((each, j) => each + at(at(other, i), j))));
}

describe.each(float8Recipes)("%s", (recipe) => {
  // Only a recipe by rows has scales of parts: to see that blocks have none is left to the long suite.
  it.each([1, 2].slice(0, recipe === "blockwise" ? runs({ quick: 1, long: 2 }) : 2))(
    "quantizes the operands of all three products, and the cotangent: %i parts",
    (parts) => {
      const [ofRows, ofWeight] = blocks[recipe];
      const [m, n, k] = recipe === "blockwise" ? [128, 128 * parts, 128 * parts] : [16, 32, 64];
      const own = recipe === "rowwise" ? parts : 1;
      const f = new Fusion();
      const [x, w, g] = [f.input([2, m / 2, k], "float"), f.input([n, k], "float"), f.input([2, m / 2, n], "float")];
      const y = float8Linear(x, w, null, recipe, { in: parts, out: parts });
      const found = gradients(f, { of: [y], cotangents: [g], wrt: [x, w] });
      for (const each of [y, ...found]) if (each !== null) f.output(each);
      const [a, b, c] = [wave(m, k, 1, 2), wave(n, k, 2, 0.1), wave(m, n, 3, 1e-3)].map((each) =>
        each.map((row) => row.map(Math.fround)),
      );
      if (a === undefined || b === undefined || c === undefined) throw new Error("three operands");
      const given = [
        { ...Tensor.from(a, "float"), shape: [2, m / 2, k] },
        Tensor.from(b, "float"),
        { ...Tensor.from(c, "float"), shape: [2, m / 2, n] },
      ];
      const { outputs } = evaluateFusion(f.data(), given);
      const ofG = recipe === "tensorwise" ? "float8_e5m2" : "float8_e4m3fn";
      const round =
        (ofA: DType) =>
        (each: Matrix, of: "a" | "b"): Matrix =>
          of === "a" ? rounded(each, ofRows, ofA) : rounded(each, ofWeight, "float8_e4m3fn");
      const wanted = [
        productInParts(a, b, own, round("float8_e4m3fn")),
        productInParts(c, turned(b), own, round(ofG)),
        product(rounded(turned(c), ofRows, ofG), rounded(turned(a), ofRows, "float8_e4m3fn")),
      ];
      wanted.forEach((matrix, i) => {
        const flat = matrix.flat();
        const most = Math.max(...flat.map(Math.abs));
        const errors = numbersOf(at(outputs, i)).map((each, j) => Math.abs(each - at(flat, j)));
        expect(Math.max(...errors), String(i)).toBeLessThanOrEqual(1e-5 * most);
        expect(errors.length).toBe(flat.length);
      });
    },
  );

  // Columns: tokens are gathered, and each device has outputs. Rows: each device has inputs, and sums are cut. In float,
  // because the oracle does not see that quantized cotangents, which nothing annotates, share a depth.
  it.each(everyNth(["rows in parts", "columns", "rows", "columns in parts"], recipe === "blockwise" ? 4 : 3))(
    "is the same over devices: %s",
    async (cut) => {
      const f = new Fusion();
      // Each device has whole blocks of what is cut.
      const [n8, k8] = cut.startsWith("columns") ? [256, 128] : [128, 256];
      const [m, n, k] = recipe === "blockwise" ? [256, n8, k8] : [32, 48, 64];
      const [x, w, g] = [f.input([m, k], "float"), f.input([n, k], "float"), f.input([m, n], "float")];
      const parts = cut.endsWith("parts") ? { in: 2, out: 2 } : {};
      const y = float8Linear(x, w, null, recipe, parts);
      const found = gradients(f, { of: [y], cotangents: [g], wrt: [x, w] });
      f.output(y);
      for (const each of found) if (each !== null) f.output(each);
      for (const each of [x, w, g, y]) each.setDeviceMesh(DeviceMesh.range(2));
      const axes = cut.startsWith("columns") ? [0, 0, 1, 1] : [1, 1, 0, 0];
      [x, w, g, y].forEach((each, i) => each.outerSplit(at(axes, i), 2).parallelize("DIDx"));
      await expectOracle(f, { devices: 2, rounds: true, machineAlone: recipe === "blockwise" });
    },
  );
});

it("quantizes once what several linears read, forward and backward", () => {
  const counts = [1, 2].map((linears) => {
    const f = new Fusion();
    const x = f.input([32, 64], "bfloat16");
    const weights = Array.from({ length: linears }, () => f.input([48, 64], "bfloat16"));
    const results = weights.map((w) => float8Linear(x, w));
    const found = gradients(f, {
      of: results,
      cotangents: results.map(() => f.input([32, 48], "bfloat16")),
      wrt: weights,
    });
    for (const each of [...results, ...found]) if (each !== null) f.output(each);
    return f.data().ops.filter((op) => op.kind === "Squeeze").length;
  });
  // Scales of x and of its columns; those of the weight and of the columns of the cotangent.
  expect(counts).toEqual([2 + 2, 2 + 4]);
});

it.each([0, -3, 2.5])("rejects %d parts", (parts) => {
  const f = new Fusion();
  const [x, w] = [f.input([8, 96], "bfloat16"), f.input([16, 96], "bfloat16")];
  for (const each of [{ in: parts }, { out: parts }])
    expect(() => float8Linear(x, w, null, "rowwise", each)).toThrow(`${Object.keys(each).join("")} = ${parts}`);
});

it("does not quantize a product whose depth 16 does not divide", () => {
  const f = new Fusion();
  const y = float8Linear(f.input([8, 24], "bfloat16"), f.input([16, 24], "bfloat16"));
  f.output(y);
  expect(f.data().ops.map(({ kind }) => kind)).toEqual(["Linear"]);
});
