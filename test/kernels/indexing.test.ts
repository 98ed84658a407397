/** Kernels that read and add at indices, against their steps one by one: in and outside of the axis, each dtype. */
import { describe, expect, it } from "vitest";
import type { UnitKernel, UnitStep, UnitValue } from "../../src/commands/kernel.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { differences, wholeValues } from "../backends/cuda/emulate/differences.ts";
import { count, operand, runKernel, type Values } from "./run-kernel.ts";
import { evaluateUnit } from "./unit-reference.ts";
import { edges } from "./values.ts";

interface Case {
  readonly unit: UnitKernel;
  readonly inputs: readonly Values[];
}

/** A unit whose last value is its result. Integer inputs of dtype `index` are indices from -2 to 8. */
function unitCase(
  inputs: readonly UnitValue[],
  made: readonly UnitValue[],
  steps: readonly UnitStep[],
  index: DType = "int64",
): Case {
  const values = [...inputs, ...made];
  const random = createRandom(inputs.length + steps.length);
  const last = at(values, values.length - 1);
  return {
    unit: {
      kind: "unit",
      inputs: inputs.map(({ dtype, shape }) => operand(dtype, shape)),
      outputs: [operand(last.dtype, last.shape)],
      values,
      steps,
      results: [values.length - 1],
    },
    inputs: inputs.map(({ dtype, shape }) => {
      if (dtype !== index) return wholeValues(dtype, count(shape), random);
      const draws = Array.from({ length: count(shape) }, () => random.integer(11) - 2);
      return dtype === "int64" ? draws.map(BigInt) : draws;
    }),
  };
}

const table = (dtype: DType, shape: readonly number[]): UnitValue => ({ dtype, shape });

const cases: Readonly<Record<string, Case>> = {
  "embedding of bfloat16": unitCase(
    [table("bfloat16", [7, 32]), table("int64", [5, 3])],
    [table("bfloat16", [5, 3, 32])],
    [{ kind: "IndexSelect", axis: 0, inputs: [0, 1], output: 2 }],
  ),
  "columns of int by int64, plus a bias": unitCase(
    [table("int", [3, 7]), table("int64", [4]), table("int", [3, 4])],
    [table("int", [3, 4]), table("int", [3, 4])],
    [
      { kind: "IndexSelect", axis: 1, inputs: [0, 1], output: 3 },
      { kind: "Binary", op: "add", inputs: [3, 2], output: 4 },
    ],
  ),
  "of a transposed and computed table": unitCase(
    [table("float", [32, 7]), table("int", [5])],
    [table("float", [7, 32]), table("float", [7, 32]), table("float", [5, 32])],
    [
      { kind: "Permute", order: [1, 0], inputs: [0], output: 2 },
      { kind: "Unary", op: "neg", inputs: [2], output: 3 },
      { kind: "IndexSelect", axis: 0, inputs: [3, 1], output: 4 },
    ],
    "int",
  ),
  "of a reshaped table, by indices of indices": unitCase(
    [table("float", [2, 18]), table("int64", [6]), table("int64", [4])],
    [table("float", [4, 9]), table("int64", [4]), table("float", [4, 9])],
    [
      { kind: "Reshape", inputs: [0], output: 3 },
      { kind: "IndexSelect", axis: 0, inputs: [1, 2], output: 4 },
      { kind: "IndexSelect", axis: 0, inputs: [3, 4], output: 5 },
    ],
  ),
  "the sum of rows": unitCase(
    [table("float", [7, 64]), table("int64", [40])],
    [table("float", [40, 64]), table("float", [64])],
    [
      { kind: "IndexSelect", axis: 0, inputs: [0, 1], output: 2 },
      { kind: "Reduction", op: "sum", axes: [0], inputs: [2], output: 3 },
    ],
  ),
  "scans of rows and of columns of what is computed, forwards and back": unitCase(
    [table("int", [40, 70]), table("int", [40, 70])],
    [
      ...Array.from({ length: 4 }, () => table("int", [40, 70])),
      table("int", [40, 70]),
      table("int", [40, 70]),
      table("int", [40, 70]),
    ],
    [
      { kind: "Binary", op: "add", inputs: [0, 1], output: 2 },
      { kind: "Scan", op: "sum", axis: 1, reverse: false, inputs: [2], output: 3 },
      { kind: "Scan", op: "amax", axis: 1, reverse: true, inputs: [2], output: 4 },
      { kind: "Scan", op: "sum", axis: 0, reverse: true, inputs: [3], output: 5 },
      { kind: "Scan", op: "prod", axis: 0, reverse: false, inputs: [4], output: 6 },
      { kind: "Binary", op: "sub", inputs: [5, 6], output: 7 },
      { kind: "Scan", op: "amin", axis: 1, reverse: false, inputs: [7], output: 8 },
    ],
  ),
  "scan of a reshaped vector, whose axis is two loops": unitCase(
    [table("float", [6, 35])],
    [table("float", [35, 6]), table("float", [210]), table("float", [210])],
    [
      { kind: "Permute", order: [1, 0], inputs: [0], output: 1 },
      { kind: "Reshape", inputs: [1], output: 2 },
      { kind: "Scan", op: "sum", axis: 0, reverse: true, inputs: [2], output: 3 },
    ],
  ),
  "positions of rows with many equal elements, by digits": unitCase(
    [table("half", [1, 400])],
    [table("int64", [1, 400])],
    [{ kind: "Argsort", axis: 1, descending: true, inputs: [0], output: 1 }],
  ),
  "positions of columns, of int64 and merged": unitCase(
    [table("int64", [100, 3])],
    [table("int64", [3, 100]), table("int64", [3, 100])],
    [
      { kind: "Permute", order: [1, 0], inputs: [0], output: 1 },
      { kind: "Argsort", axis: 1, descending: false, inputs: [1], output: 2 },
    ],
  ),
  "of an empty table": unitCase(
    [table("half", [0, 3]), table("int64", [2])],
    [table("half", [2, 3])],
    [{ kind: "IndexSelect", axis: 0, inputs: [0, 1], output: 2 }],
  ),
  "one logit per row": unitCase(
    [table("half", [6, 7]), table("int64", [6, 1])],
    [table("float", [6, 7]), table("float", [6, 1])],
    [
      { kind: "Cast", to: "float", inputs: [0], output: 2 },
      { kind: "Gather", axis: 1, inputs: [2, 1], output: 3 },
    ],
  ),
  "rows added to a table": unitCase(
    [table("float", [7, 32]), table("int64", [20]), table("float", [20, 32])],
    [table("int64", [20, 1]), table("int64", [20, 32]), table("float", [7, 32])],
    [
      { kind: "Broadcast", flags: [false, true], inputs: [1], output: 3 },
      { kind: "Expand", inputs: [3], output: 4 },
      { kind: "ScatterAdd", axis: 0, inputs: [0, 4, 2], output: 5 },
    ],
  ),
  "the sum of one stretched element, which no memory is read along": unitCase(
    [table("double", [1])],
    [table("double", [6]), table("double", []), table("double", [])],
    [
      { kind: "Expand", inputs: [0], output: 1 },
      { kind: "Reduction", op: "sum", axes: [0], inputs: [1], output: 2 },
      { kind: "Binary", op: "add", inputs: [2, 2], output: 3 },
    ],
  ),
  "added in 32 bits, and read by a kernel": unitCase(
    [table("bfloat16", [3, 7]), table("int64", [3, 30]), table("bfloat16", [3, 30])],
    [table("float", [3, 7]), table("float", [3, 30]), table("float", [3, 7]), table("bfloat16", [3, 7])],
    [
      { kind: "Cast", to: "float", inputs: [0], output: 3 },
      { kind: "Cast", to: "float", inputs: [2], output: 4 },
      { kind: "ScatterAdd", axis: 1, inputs: [3, 1, 4], output: 5 },
      { kind: "Cast", to: "bfloat16", inputs: [5], output: 6 },
    ],
  ),
};

describe.each(Object.entries(cases))("%s", (_, { unit, inputs }) => {
  it("on the CPU", () => {
    expect(runKernel(unit, inputs)).toEqual(evaluateUnit(unit, inputs));
  });
});

/** NaN, infinities, both zeros, subnormals, and repeats of all, in rows for every way to sort. */
describe.each(["double", "float", "half", "bfloat16", "int", "int64", "bool"] as const)("the order of %s", (dtype) => {
  it.each([7, 60, 400])("in rows of %i", (length) => {
    const random = createRandom(length);
    const values = Array.from({ length }, () => at(edges[dtype], random.integer(edges[dtype].length)));
    for (const descending of [false, true]) {
      const { unit } = unitCase(
        [table(dtype, [length])],
        [table("int64", [length])],
        [{ kind: "Argsort", axis: 0, descending, inputs: [0], output: 1 }],
      );
      expect(runKernel(unit, [values])).toEqual(evaluateUnit(unit, [values]));
    }
  });
});

const obstacle = emulationObstacle();
it.skipIf(obstacle !== null)("as CUDA kernels", () => {
  const named = Object.entries(cases).map(([name, { unit, inputs }]) => ({
    name,
    kernel: unit,
    inputs,
    expected: evaluateUnit(unit, inputs),
  }));
  expect(differences(named, [256, 16])).toEqual([]);
});
