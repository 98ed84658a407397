/**
 * Long loops in WebAssembly SIMD: several pages of memory side by side, and sums of rows by vectors that are transposed.
 * `runKernel` compares them with the generated JavaScript, bit for bit, in memory where only the outputs may change.
 */
import { expect, it } from "vitest";
import type { Kernel } from "../../src/commands/kernel.ts";
import { createRandom } from "../../src/support/random.ts";
import { at } from "../../src/support/invariant.ts";
import { operand, runKernel, type Values } from "./run-kernel.ts";
import { firstDifference, randomValues } from "./values.ts";

const random = createRandom(40);
const floats = (elements: number): Values => randomValues("float", elements, random);

it.each([2 ** 18, 2 ** 18 + 23])("of %i neighbours, also in place", (length) => {
  const flat = operand("float", [length]);
  const kernel: Kernel = { kind: "unary", op: "neg", inputs: [flat], outputs: [flat] };
  const values = floats(length);
  const expected = values.map((value) => -Number(value));
  expect(firstDifference(at(runKernel(kernel, [values]), 0), expected)).toBeNull();
  expect(firstDifference(at(runKernel(kernel, [values], { inPlace: 0 }), 0), expected)).toBeNull();
});

it.each(["half", "int64"] as const)("of neighbours of %s", (dtype) => {
  const flat = operand(dtype, [2 ** 18 + 5]);
  const values = randomValues(dtype, 2 ** 18 + 5, random);
  const [found = []] = runKernel({ kind: "unary", op: "abs", inputs: [flat], outputs: [flat] }, [values]);
  expect(found.some((value, i) => value !== values[i])).toBe(true);
});

it.each([
  [8, 4096],
  [11, 4099],
  [34, 1024],
])("of %i rows of %i, with a value for each row, for each column, or for all", (rows, columns) => {
  const whole = operand("float", [rows, columns]);
  const values = floats(rows * columns);
  for (const strides of [
    [1, 0],
    [0, 1],
    [0, 0],
  ] as const) {
    const other = operand("float", [rows, columns], strides);
    const added = floats(rows * columns).slice(0, strides[0] === 1 ? rows : columns);
    const addedAt = (i: number): number =>
      Number(added[strides[0] * Math.floor(i / columns) + strides[1] * (i % columns)]);
    const spread = values.map((_, i) => addedAt(i));
    const [found = []] = runKernel({ kind: "binary", op: "add", inputs: [whole, other], outputs: [whole] }, [
      values,
      spread,
    ]);
    const expected = values.map((value, i) => Math.fround(Number(value) + addedAt(i)));
    expect(firstDifference(found, expected)).toBeNull();
  }
});

it.each([
  [4, 4],
  [9, 131],
  [11, 64 * 64 + 66],
])("sums and the largest of %i rows of %i", (rows, columns) => {
  const values = floats(rows * columns);
  const input = operand("float", [rows, columns]);
  const reduced = (op: "sum" | "amax"): Values =>
    at(
      runKernel({ kind: "reduction", op, axes: [1], inputs: [input], outputs: [operand("float", [rows])] }, [values]),
      0,
    );
  const rowsOf = Array.from({ length: rows }, (_, i) => values.slice(i * columns, (i + 1) * columns).map(Number));
  expect(reduced("amax")).toEqual(rowsOf.map((row) => Math.max(...row)));
  const sums = reduced("sum");
  for (const [i, row] of rowsOf.entries()) {
    const exact = row.reduce((sum, value) => sum + value, 0);
    const size = row.reduce((sum, value) => sum + Math.abs(value), 0);
    expect(Math.abs(Number(sums[i]) - exact)).toBeLessThan(size * 2 ** -18);
  }
});
