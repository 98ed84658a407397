/**
 * Gradients where functions have corners, poles or no values, beside those of PyTorch 2.11 (float64, on the CPU, of the
 * sum of the result).
 */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { gradients } from "../../../src/ir/api/gradients.ts";
import * as ops from "../../../src/ir/api/ops.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import { type NestedValues, Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";

const { abs, amax, amin, clamp, exp, layerNorm, log, log1p, log2, logsumexp, maximum, minimum, pow, prod } = ops;
const { reciprocal, relu, rsqrt, sigmoid, silu, softplus, sqrt, sum, tanh, varMean } = ops;

const inf = Infinity;

type Corner = readonly [
  name: string,
  build: (...inputs: TensorView[]) => TensorView,
  inputs: readonly NestedValues[],
  gradients: readonly NestedValues[],
];

const corners: readonly Corner[] = [
  ["relu", relu, [[-1, 0, 1, NaN]], [[0, 0, 1, 1]]],
  ["abs", abs, [[-1, 0, -0, 1]], [[-1, 0, 0, 1]]],
  ["clamp", (x) => clamp(x, -1, 2), [[-2, -1, 0, 2, 3, NaN]], [[0, 1, 1, 1, 0, 0]]],
  ["clamp from below", (x) => clamp(x, -1, null), [[-2, -1, NaN]], [[0, 1, 0]]],
  ["clamp from above", (x) => clamp(x, null, 2), [[1, 2, 3]], [[1, 1, 0]]],
  ["clamp to crossed bounds", (x) => clamp(x, 2, -1), [[-2, -1, 0, 2, 3]], [[0, 0, 0, 0, 0]]],
  [
    "clamp between tensors",
    (x, low, high) => clamp(x, low, high),
    [[-2, -1, 0, 2, 3, 0, 1, 2, 5, NaN, 1], [-1, -1, -1, -1, -1, 1, 1, 1, 1, 0, 1], [2, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1]], // prettier-ignore
    [[0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0]], // prettier-ignore
  ],
  // PyTorch gives the lower one of two equal bounds nothing.
  ["clamp between equal tensors", clamp, [[0, 1, 2], [1, 1, 1], [1, 1, 1]], [[0, 1, 0], [1, 0, 0], [0, 0, 1]]], // prettier-ignore
  ["maximum", maximum, [[0, 1, 2, NaN, 1], [0, 0, 3, 1, NaN]], [[0.5, 1, 0, 1, 1], [0.5, 0, 1, 1, 1]]], // prettier-ignore
  ["minimum", minimum, [[0, 1, 2, NaN, 1], [0, 0, 3, 1, NaN]], [[0.5, 0, 1, 1, 1], [0.5, 1, 0, 1, 1]]], // prettier-ignore
  ["amax", (x) => amax(x, [1]), [[[1, 1, 0], [inf, inf, 0], [NaN, 1, 2]]], [[[0.5, 0.5, 0], [0.5, 0.5, 0], [NaN, NaN, NaN]]]], // prettier-ignore
  ["amin", (x) => amin(x, [1]), [[[0, 1, 0], [-inf, 1, 0]]], [[[0.5, 0, 0.5], [1, 0, 0]]]], // prettier-ignore
  ["prod", (x) => prod(x, [1]), [[[0, 2, 3], [0, 0, 3]]], [[[6, 0, 0], [0, 0, 0]]]], // prettier-ignore
  ["pow", pow, [[0, 0, 0, 2, -2, 0], [0, 1, -1, 0, 2, 2]], [[0, 1, -inf, 0, -4, 0], [0, 0, -inf, Math.LN2, NaN, 0]]], // prettier-ignore
  ...(
    [
      [0, [0, 0, 0]],
      [1, [1, 1, 1]],
      [2, [-2, 0, 4]],
      [-1, [-1, -inf, -0.25]],
      [0.5, [NaN, inf, Math.SQRT1_2 / 2]],
      [1.5, [NaN, 0, 1.5 * Math.SQRT2]],
      [-2, [2, -inf, -0.25]],
    ] as const
  ).map(([b, gradient]): Corner => [`x to the power of ${b}`, (x) => pow(x, b), [[-1, 0, 2]], [[...gradient]]]),
  ["powers of 0", (x) => pow(0, x), [[-1, 0, 2]], [[-inf, 0, 0]]],
  ["powers of 1", (x) => pow(1, x), [[-1, 0, 2]], [[0, 0, 0]]],
  ["powers of -1", (x) => pow(-1, x), [[-1, 0, 2]], [[NaN, NaN, NaN]]],
  ["sqrt", sqrt, [[0, 1, -1]], [[inf, 0.5, NaN]]],
  ["rsqrt", rsqrt, [[0, 1, -1]], [[-inf, -0.5, NaN]]],
  ["log", log, [[0, 1, -1]], [[inf, 1, -1]]],
  ["log1p", log1p, [[0, 1, -1]], [[1, 0.5, inf]]],
  ["log2", log2, [[0, 1, -1]], [[inf, Math.LOG2E, -Math.LOG2E]]],
  ["reciprocal", reciprocal, [[0, 1, -1]], [[-inf, -1, -1]]],
  ["gelu", (x) => ops.gelu(x), [[-inf, 0, inf, 800, -800]], [[NaN, 0.5, NaN, 1, 0]]],
  ["silu", silu, [[-inf, 0, inf, 800, -800]], [[NaN, 0.5, NaN, 1, 0]]],
  ["softplus", softplus, [[-inf, 0, inf, 800, -800]], [[0, 0.5, 1, 1, 0]]],
  ["sigmoid", sigmoid, [[-inf, 0, inf]], [[0, 0.25, 0]]],
  ["tanh", tanh, [[-inf, 0, inf]], [[0, 1, 0]]],
  ["erf", ops.erf, [[-inf, 0, inf]], [[0, 2 / Math.sqrt(Math.PI), 0]]],
  ["exp", exp, [[-inf, 0, inf]], [[0, 1, inf]]],
  ["logsumexp", (x) => logsumexp(x, [1]), [[[-inf, 0], [-inf, -inf], [inf, 0]]], [[[0, 1], [NaN, NaN], [NaN, 0]]]], // prettier-ignore
  ["the variance of one element", (x) => varMean(x, [1]).variance, [[[1], [2]]], [[[NaN], [NaN]]]], // prettier-ignore
  ["layerNorm of equal elements", (x) => layerNorm(x), [[[1, 1]]], [[[0, 0]]]],
];

describe("corners", () => {
  it.each(corners)("of %s", (_, build, inputs, expected) => {
    const f = new Fusion();
    const values = inputs.map((each) => Tensor.from(each, "double"));
    const wrt = values.map(({ shape }) => f.input(shape, "double"));
    const y = build(...wrt);
    const loss = sum(y, [...y.extents.keys()]);
    for (const gradient of gradients(f, { of: [loss], wrt })) if (gradient !== null) f.output(gradient);
    const rounded = ({ data }: Tensor): readonly number[] =>
      [...data].map((x) => Number(Number(x).toPrecision(12)) + 0);
    const found = evaluateFusion(f.data(), values).outputs.map(rounded);
    expect(found).toEqual(expected.map((each) => rounded(Tensor.from(each, "double"))));
  });
});
