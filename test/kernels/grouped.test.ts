/** Grouped matmuls against their steps one by one: sizes of groups, forms, dtypes and strides, on the CPU and as CUDA. */
import { describe, expect, it } from "vitest";
import type { Operand, UnitKernel } from "../../src/commands/kernel.ts";
import { splitKernel } from "../../src/kernels/nests/split-kernel.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { differences, wholeValues } from "../backends/cuda/emulate/differences.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { count, operand, runKernel, type Values } from "./run-kernel.ts";
import { evaluateUnit } from "./unit-reference.ts";

interface Case {
  readonly unit: UnitKernel;
  readonly inputs: readonly Values[];
}

function grouped(x: Operand, y: Operand, ends: Operand, output: Operand, values: readonly number[]): Case {
  const random = createRandom(count(x.shape));
  return {
    unit: {
      kind: "unit",
      inputs: [x, y, ends],
      outputs: [output],
      values: [x, y, ends, output].map(({ dtype, shape }) => ({ dtype, shape })),
      steps: [{ kind: "GroupedMatmul", inputs: [0, 1, 2], output: 3 }],
      results: [3],
    },
    inputs: [
      wholeValues(x.dtype, count(x.shape), random),
      wholeValues(y.dtype, count(y.shape), random),
      ends.dtype === "int64" ? values.map(BigInt) : values,
    ],
  };
}

const sizes = { rows: 70, k: 40, n: 36 };
const ends = { none: [0, 0, 0], one: [0, 70, 70], some: [3, 3, 67], first: [70, 70, 70], ragged: [32, 33, 64] };

function rows(dtype: DType, stops: readonly number[], { rows: m, k, n } = sizes): Case {
  const shapes = [
    [m, k],
    [stops.length, k, n],
    [m, n],
  ] as const;
  const [x, w, y] = shapes.map((shape) => operand(dtype, shape));
  if (x === undefined || w === undefined || y === undefined) throw new Error("three operands");
  return grouped(x, w, operand("int64", [stops.length]), y, stops);
}

function terms(dtype: DType, stops: readonly number[], { rows: m, k, n } = sizes): Case {
  const [x, y, w] = [operand(dtype, [m, k]), operand(dtype, [m, n]), operand(dtype, [stops.length, k, n])];
  return grouped(x, y, operand("int", [stops.length]), w, stops);
}

const cases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(Object.entries(ends).map(([name, stops]) => [`rows, ${name}`, rows("float", stops)])),
  ...Object.fromEntries(Object.entries(ends).map(([name, stops]) => [`terms, ${name}`, terms("float", stops)])),
  ...Object.fromEntries(
    (["double", "half", "bfloat16", "int", "int64"] as const).flatMap((dtype) => [
      [`rows of ${dtype}`, rows(dtype, ends.ragged)],
      [`terms of ${dtype}`, terms(dtype, ends.ragged)],
    ]),
  ),
  // More rows than a block of a smaller group has, so that this one needs more scratch; and two levels of sums.
  "rows of which a group is a whole block": rows("float", [256], { rows: 257, k: 300, n: 4 }),
  "terms in two blocks": terms("float", [1, 290], { rows: 300, k: 5, n: 4 }),
  "one group, no groups' rows left": rows("float", [70]),
  "many groups of one row": rows(
    "float",
    Array.from({ length: 40 }, (_, i) => i + 1),
  ),
  "transposed operands and result": grouped(
    operand("float", [20, 8], [1, 20]),
    operand("float", [2, 8, 12], [96, 1, 8]),
    operand("int64", [2]),
    operand("float", [20, 12], [1, 20]),
    [7, 19],
  ),
  "groups of each batch": grouped(
    operand("float", [3, 20, 8]),
    operand("float", [3, 2, 8, 12]),
    operand("int64", [3, 2]),
    operand("float", [3, 20, 12]),
    [7, 20, 0, 5, 20, 20],
  ),
  "matrices and ends that batches share": grouped(
    operand("float", [3, 20, 8]),
    operand("float", [1, 2, 8, 12]),
    operand("int64", [2]),
    operand("float", [3, 20, 12]),
    [7, 18],
  ),
  "terms of each batch": grouped(
    operand("float", [3, 20, 8]),
    operand("float", [3, 20, 12]),
    operand("int64", [3, 1]),
    operand("float", [3, 1, 8, 12]),
    [7, 20, 0],
  ),
};

const expected = new Map<Case, readonly Values[]>();

function expectedOf(each: Case): readonly Values[] {
  const found = expected.get(each) ?? evaluateUnit(each.unit, each.inputs);
  expected.set(each, found);
  return found;
}

describe.each(Object.entries(cases))("%s", (_, each) => {
  it("on the CPU", () => {
    expect(runKernel(each.unit, each.inputs)).toEqual(expectedOf(each));
  });
});

it("parts of a kernel keep all rows: they are of columns, or of batches", () => {
  const offsets = (name: string): unknown =>
    splitKernel(cases[name]?.unit ?? at(Object.values(cases), 0).unit, 2).map((part) => part.inputOffsets);
  expect(offsets("rows, some")).toEqual([[0, 0, 0], [0, 64, 0]]); // prettier-ignore
  expect(offsets("groups of each batch")).toEqual([[0, 0, 0], [640, 768, 16]]); // prettier-ignore
});

it.each([
  ["that fall", [40, 30, 60]],
  ["past the last row", [40, 50, 71]],
  ["below 0", [-1, 30, 60]],
])("ends %s end the run with a message, and write nothing elsewhere", (_, stops) => {
  for (const { unit, inputs } of [rows("float", stops), terms("float", stops)]) {
    expect(diagnosticOf(() => runKernel(unit, inputs)).code).toBe("group-ends-invalid");
  }
});

const obstacle = emulationObstacle();
it.skipIf(obstacle !== null)("as CUDA kernels", () => {
  const named = Object.entries(cases).map(([name, each]) => ({
    name,
    kernel: each.unit,
    inputs: each.inputs,
    expected: expectedOf(each),
  }));
  expect(differences(named, [256, 16])).toEqual([]);
});
