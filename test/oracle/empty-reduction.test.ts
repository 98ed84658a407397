import { expect, it } from "vitest";
import { amax, amin, Fusion, prod, sum } from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { emptyTensor } from "../../src/numerics/tensor/host-tensor.ts";

it.each([
  ["float", 0, 1, -Infinity, Infinity],
  ["int", 0, 1, -(2 ** 31), 2 ** 31 - 1],
  ["int64", 0n, 1n, -(2n ** 63n), 2n ** 63n - 1n],
] as const)("a reduction of no %s is the neutral element", (dtype, ...expected) => {
  const f = new Fusion();
  const x = f.input([2, 0], dtype);
  for (const reduce of [sum, prod, amax, amin]) f.output(reduce(x, [1]));
  const { outputs } = evaluateFusion(f.data(), [emptyTensor(dtype, [2, 0])]);
  // The sign of a zero does not matter.
  expect(outputs.map(({ data }) => (data[1] === 0 ? 0 : data[1]))).toEqual(expected);
});
