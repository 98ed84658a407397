/** Reductions: every op, dtype and choice of axes against sums in row-major order; strides on both sides; edges. */
import { describe, expect, it } from "vitest";
import type { Operand, ReductionKernel } from "../../src/commands/kernel.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import type { ReductionOpType } from "../../src/ir/ops/op.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { createRandom } from "../../src/support/random.ts";
import { arithmeticDTypes, floatDTypes, reduce } from "./reference.ts";
import { count, operand, rowMajor, runKernel, type Values } from "./run-kernel.ts";
import { edges, firstDifference, randomValues } from "./values.ts";

const random = createRandom(23);
const everyDType = keysOf(dtypes);
const ops: readonly ReductionOpType[] = ["sum", "prod", "amax", "amin"];

/** Elements of equal kept indices, in row-major order of the whole input. */
function groups(shape: readonly number[], axes: readonly number[], values: Values): readonly Values[] {
  const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const keptShape = kept.map((axis) => at(shape, axis));
  const strides = rowMajor(shape);
  const result = Array.from({ length: count(keptShape) }, (): Value[] => []);
  for (const [i, value] of values.entries()) {
    const index = shape.map((extent, axis) => Math.floor(i / at(strides, axis)) % extent);
    const group = kept.reduce((sum, axis, j) => sum + at(index, axis) * at(rowMajor(keptShape), j), 0);
    at(result, group).push(value);
  }
  return result;
}

function kernelOf(
  op: ReductionOpType,
  dtype: DType,
  shape: readonly number[],
  axes: readonly number[],
  layout: { readonly input?: readonly number[]; readonly output?: readonly number[] } = {},
): ReductionKernel {
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const inputs: readonly Operand[] = [operand(dtype, shape, layout.input)];
  return { kind: "reduction", op, axes, inputs, outputs: [operand(dtype, kept, layout.output)] };
}

function check(kernel: ReductionKernel, values: Values): void {
  const { dtype, shape } = at(kernel.inputs, 0);
  const expected = groups(shape, kernel.axes, values).map((group) => reduce(kernel.op, dtype, group));
  expect(firstDifference(runKernel(kernel, [values])[0] ?? [], expected)).toBeNull();
}

const axesOfThree = [[0], [1], [2], [0, 1], [0, 2], [1, 2], [2, 0], [0, 1, 2]];

const pairs = combinations({ op: ops, dtype: everyDType });
const accumulated = pairs.filter(
  ({ op, dtype }) => op.startsWith("am") || arithmeticDTypes.some((each) => each === dtype),
);

it.each(sample(accumulated, 9))("$op of $dtype over any axes", ({ op, dtype }) => {
  for (const shape of [
    [3, 4, 5],
    [1, 7, 2],
    [6, 1, 1],
    [2, 40, 3],
  ]) {
    const values = randomValues(dtype, count(shape), random);
    for (const axes of axesOfThree) check(kernelOf(op, dtype, shape, axes), values);
  }
});

describe.each(ops)("%s", (op) => {
  it("of strided inputs, into strided outputs", () => {
    const shape = [3, 4, 5];
    const values = randomValues("float", 60, random);
    for (const input of [
      [1, 3, 12],
      [5, 15, 1],
      [41, 10, 2],
      [64, 7, 1],
    ]) {
      for (const axes of axesOfThree) check(kernelOf(op, "float", shape, axes, { input }), values);
    }
    check(kernelOf(op, "float", shape, [1], { output: [1, 3] }), values);
    check(kernelOf(op, "float", shape, [0], { output: [11, 2] }), values);
    check(kernelOf(op, "float", shape, [2], { output: [2, 9] }), values);
  });

  it.each(floatDTypes)("of %s: NaN, infinities and zeros wherever they stand", (dtype) => {
    const special = [NaN, Infinity, -Infinity, 0, -0];
    const shapes = [[2, 3], [3, 2], [1, 6]]; // prettier-ignore
    const kernels = shapes.flatMap((shape) => [0, 1].map((axis) => kernelOf(op, dtype, shape, [axis])));
    for (const x of special) {
      for (const y of special) for (const kernel of kernels) check(kernel, [1, x, -2, 0.5, y, 3]);
    }
  });

  it("of edge values of integers", () => {
    for (const dtype of ["int", "int64"] as const) {
      const values = edges[dtype];
      check(kernelOf(op, dtype, [values.length], [0]), values);
      check(kernelOf(op, dtype, [values.length, 1], [0]), values);
      check(kernelOf(op, dtype, [2, values.length], [0]), [...values, ...values.toReversed()]);
    }
  });
});

it("adds in float32 and rounds half and bfloat16 once", () => {
  const steps = Array.from({ length: 65 }, (_, i) => (i === 0 ? 1 : 2 ** -11));
  // Rounded at each step, the small ones would vanish.
  expect(runKernel(kernelOf("sum", "half", [65], [0]), [steps])).toEqual([[1 + 2 ** -5]]);
  expect(runKernel(kernelOf("sum", "half", [65, 1], [0]), [steps])).toEqual([[1 + 2 ** -5]]);
  const coarse = steps.map((x) => (x === 1 ? 1 : 2 ** -9));
  expect(runKernel(kernelOf("sum", "bfloat16", [65], [0]), [coarse])).toEqual([[1 + 2 ** -3]]);
});

describe("in blocks (src/numerics/sum-order.ts)", () => {
  it.each([
    ["sum", "float"],
    ["sum", "bfloat16"],
    ["prod", "double"],
    ["amax", "int64"],
  ] as const)("%s of more %s than a block, in every layout", (op, dtype) => {
    for (const [shape, axes, input] of [
      [[65], [0]],
      [[200, 5], [0]],
      [[5, 200], [1]],
      [
        [3, 70, 6],
        [0, 1],
      ],
      [
        [6, 70, 3],
        [1, 2],
      ],
      [
        [70, 6, 3],
        [0, 2],
      ],
      [[130, 67], [0], [1, 130]],
      [[67, 130], [1], [1, 67]],
      [
        [9, 64, 2],
        [0, 1],
        [300, 2, 1],
      ],
      [
        [9, 20, 2],
        [0, 1],
        [70, 3, 1],
      ],
      [
        [9, 20, 40],
        [0, 1],
        [2000, 43, 1],
      ],
      [[4100, 3], [0]],
      [[2, 4100], [1]],
    ] as const) {
      const values = randomValues(dtype, count(shape), random);
      check(kernelOf(op, dtype, shape, axes, input === undefined ? {} : { input }), values);
    }
  });

  it("of four levels", () => {
    const values = randomValues("float", 64 ** 3 + 100, random);
    check(kernelOf("sum", "float", [values.length], [0]), values);
  });
});

it("adds a block of floats in increasing order of the axis, whichever axis is contiguous", () => {
  // From the left 2^24 + 1 rounds back to 2^24 each time; from the right the ones add up.
  const values = [2 ** 24, 1, 1, 1, 1];
  expect(runKernel(kernelOf("sum", "float", [5], [0]), [values])).toEqual([[2 ** 24]]);
  expect(runKernel(kernelOf("sum", "float", [5], [0]), [values.toReversed()])).toEqual([[2 ** 24 + 4]]);
  const columns = values.flatMap((x) => [x, x]);
  expect(runKernel(kernelOf("sum", "float", [5, 2], [0]), [columns])).toEqual([[2 ** 24, 2 ** 24]]);
});

it("is any and all for bool", () => {
  const values = [0, 0, 1, 0, 1, 1];
  expect(runKernel(kernelOf("amax", "bool", [3, 2], [1]), [values])).toEqual([[0, 1, 1]]);
  expect(runKernel(kernelOf("amin", "bool", [3, 2], [1]), [values])).toEqual([[0, 0, 1]]);
});
