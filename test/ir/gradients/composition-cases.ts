/** Calls of every composition, with every choice of its optional operands, and of what stretches. */
import {
  add,
  cast,
  cat,
  clamp,
  crossEntropy,
  cumsum,
  dropout,
  layerNorm,
  logSoftmax,
  logsumexp,
  mean,
  mul,
  rmsNorm,
  rope,
  sdpa,
  select,
  softmax,
  sum,
  swiglu,
  varMean,
} from "../../../src/ir/api/ops.ts";
import { detached, extreme, paddedEmbedding } from "../../../src/ir/api/ops/compositions/own-gradients.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";

export type Build = (...inputs: TensorView[]) => TensorView | readonly TensorView[];

export type CompositionCase = readonly [name: string, build: Build, ...shapes: (readonly number[])[]];

const moments: Build = (x) => {
  const { mean: average, variance } = varMean(x, [0, 2]);
  return [average, variance];
};

/** A class of each row, which no small change of x changes. */
const targets = (x: TensorView): TensorView => cast(mul(select(x, x.rank - 1, 0), 0.9), "int64");

/** 0, 1, 2 and 3 down each column, whatever the table is. */
const rowsOf = (table: TensorView): TensorView => cast(mul(cumsum(add(mul(table, 0), 1), 0), 0.999), "int64");

/** 0, whatever x is. */
const seed = (x: TensorView): TensorView => cast(mul(sum(x, [...x.extents.keys()]), 0), "int64");

export const compositionCases: readonly CompositionCase[] = [
  ["mean", (x) => mean(x, [0, -1]), [2, 3, 4]],
  ["varMean", moments, [2, 3, 4]],
  ["varMean, its mean alone", (x) => varMean(x, [0]).mean, [3, 2]],
  ["varMean, its variance alone, without a correction", (x) => varMean(x, [1], 0).variance, [3, 4]],
  ["clamp", (x) => clamp(x, -0.5, 0.5), [3, 4]],
  ["clamp from below", (x) => clamp(x, -0.2, null), [3, 4]],
  ["clamp from above, by a tensor", (x, high) => clamp(x, null, high), [3, 4], [1, 4]],
  ["clamp between tensors", (x, low, high) => clamp(x, low, high), [3, 4], [3, 1], [3, 4]],
  ["softmax", (x) => softmax(x, 1), [2, 3, 2]],
  ["logSoftmax", (x) => logSoftmax(x, 0), [3, 2]],
  ["logsumexp", (x) => logsumexp(x, [0, 2]), [2, 3, 2]],
  ["crossEntropy", (x) => crossEntropy(x, targets(x)), [2, 2, 4]],
  ["crossEntropy of a row", (x) => crossEntropy(x, targets(x)), [4]],
  ["layerNorm", (x) => layerNorm(x), [3, 4]],
  ["layerNorm with a weight", (x, w) => layerNorm(x, w), [3, 4], [4]],
  ["layerNorm with a bias", (x, b) => layerNorm(x, null, b), [3, 4], [4]],
  ["layerNorm with a weight and a bias", (x, w, b) => layerNorm(x, w, b), [2, 3, 4], [4], [4]],
  ["layerNorm with a weight that is its bias", (x, w) => layerNorm(x, w, w), [2, 4], [4]],
  ["layerNorm of a vector", (x, w, b) => layerNorm(x, w, b), [4], [4], [4]],
  ["rmsNorm", (x) => rmsNorm(x), [3, 4]],
  ["rmsNorm with a weight", (x, w) => rmsNorm(x, w), [2, 3, 4], [4]],
  ["rmsNorm of a vector that is its weight", (x) => rmsNorm(x, x), [4]],
  ["rope", (x, c, s) => rope(x, c, s), [2, 3, 4], [3, 2], [3, 2]],
  ["rope with angles that stretch", (x, c, s) => rope(x, c, s), [2, 3, 4], [2], [2, 1, 2]],
  ["swiglu", (gate, up) => swiglu(gate, up), [2, 3], [2, 3]],
  ["swiglu of a gate for all rows", (gate, up) => swiglu(gate, up), [1, 3], [2, 3]],
  ["swiglu of a number of its gate", (gate, up) => swiglu(gate, up), [2, 3], []],
  ["dropout", (x) => dropout(x, 0.3, seed(x)), [3, 4]],
  ["dropout of nothing", (x) => dropout(x, 0, seed(x)), [3, 4]],
  ["attention with dropout", (q, k, v) => sdpa(q, k, v, { dropout: { p: 0.3, seed: seed(q) }, causal: "topLeft" }).output, [3, 2], [3, 2], [3, 2]], // prettier-ignore
];

/** Those whose gradients are not those of their ops. */
export const ownGradientCases: readonly CompositionCase[] = [
  ["a factor that is detached", (x) => mul(x, detached(x)), [3, 4]],
  ["an embedding with a row of padding", (table) => paddedEmbedding(table, rowsOf(table), 2), [4, 3]],
  ["a maximum of which one element is taken", (x) => extreme(x, 1, "max")[0], [3, 4]],
  ["the first of equal elements, a maximum", (x) => extreme(cat([x, detached(x)], 1), 1, "max")[0], [3, 4]],
  ["the first of equal elements, a minimum", (x) => extreme(cat([x, detached(x)], 1), 1, "min")[0], [3, 4]],
];
