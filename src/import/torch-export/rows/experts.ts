/**
 * Rows of the ops with which mixtures of experts route tokens: top-k, sorting, counting and grouped matmul. Sizes of the
 * groups are known only to the run, so that every expert multiplies every row, and each row takes its own expert's.
 */
import { clamp, eq, ge, gt, isnan, logicalAnd, logicalOr, lt, where } from "../../../ir/api/ops/choices.ts";
import { inDType } from "../../../ir/api/ops/compositions/compose.ts";
import { matmul } from "../../../ir/api/ops/contractions.ts";
import { iota, zeros } from "../../../ir/api/ops/creation.ts";
import { add, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { floor, logicalNot, neg } from "../../../ir/api/ops/functions.ts";
import { scatterAdd } from "../../../ir/api/ops/indexing.ts";
import { amax, amin, sum } from "../../../ir/api/ops/reductions.ts";
import { cat, expand, pad, unsqueeze } from "../../../ir/api/ops/shape.ts";
import { broadcast, reshape } from "../../../ir/api/ops/views.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { constantValue } from "../../../ir/scalar/fold.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { axisIn, type NodeOperands } from "../operands.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";

/** Pairs are compared, and their number grows with the square. */
const mostSorted = 4096;
const mostTaken = 64;

/** Indices along an axis of a tensor of `rank` axes. */
function along(o: NodeOperands, x: TensorView, axis: number, rank = x.rank, own = axis): TensorView {
  return broadcast(
    iota(o.fusion, at(x.extents, axis)),
    Array.from({ length: rank }, (_, i) => i !== own),
  );
}

/** Takes the largest element k times; NaN is the largest, and the first of equal ones comes first. */
const topK: AtenRow = (o) => {
  const given = o.tensor("self");
  const [k, axis] = [o.whole("k"), axisIn(o.whole("dim", -1), given.rank)];
  if (k > mostTaken || dtypes[given.dtype].family !== "float") {
    return o.refuse(`${k} of ${given.dtype}`, `at most ${mostTaken} of a float dtype`);
  }
  const isLargest = o.flag("largest", true);
  const x = isLargest ? given : neg(given);
  const places = along(o, x, axis);
  const values: TensorView[] = [];
  const indices: TensorView[] = [];
  let taken: TensorView | null = null;
  for (let i = 0; i < k; i++) {
    const most = unsqueeze(amax(taken === null ? x : where(taken, -Infinity, x), [axis]), axis);
    const isMost = logicalOr(eq(x, most), isnan(x));
    const isFree: TensorView = taken === null ? isMost : logicalAnd(isMost, logicalNot(taken));
    const index = unsqueeze(amin(where(isFree, places, Number.MAX_SAFE_INTEGER), [axis]), axis);
    values.push(isLargest ? most : neg(most));
    indices.push(index);
    const isTaken = eq(places, index);
    taken = taken === null ? isTaken : logicalOr(taken, isTaken);
  }
  return [cat(values, axis), cat(indices, axis)];
};

/** The place of an element is the number of those before it; equal ones keep their order. */
const sort: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = axisIn(o.whole("dim", -1), x.rank);
  const extent = constantValue(at(x.extents, axis));
  if (extent === null || extent > mostSorted || x.dtype === "bool") {
    return o.refuse(`an axis of ${extent ?? "a symbolic size"}`, `numbers, at most ${mostSorted} along the axis`);
  }
  const [mine, other] = [unsqueeze(x, axis + 1), unsqueeze(x, axis)];
  const isBefore = o.flag("descending", false) ? gt(other, mine) : lt(other, mine);
  const isEarlier = lt(along(o, x, axis, x.rank + 1, axis + 1), along(o, x, axis, x.rank + 1, axis));
  const places = sum(inDType(logicalOr(isBefore, logicalAnd(eq(other, mine), isEarlier)), "int64"), [axis + 1]);
  const scattered = (tensor: TensorView): TensorView =>
    scatterAdd(zeros(o.fusion, x.extents, tensor.dtype), axis, places, tensor);
  return [scattered(x), scattered(expand(along(o, x, axis), x.extents))];
};

/** How many elements are in each of `bins` equal parts from `min` to `max`, which is in the last one. */
const histogram: AtenRow = (o) => {
  const x = reshape(o.tensor("self"), [-1]);
  const [bins, least, most] = [o.whole("bins", 100), o.number("min", 0), o.number("max", 0)];
  if (most <= least) return o.refuse(`bins from ${least} to ${most}`, "bounds of which the second is larger");
  const scaled = floor(mul(sub(x, least), bins / (most - least)));
  const bin = unsqueeze(clamp(scaled, null, bins - 1), 1);
  const isInside = unsqueeze(logicalAnd(ge(x, least), logicalNot(gt(x, most))), 1);
  const numbers = inDType(unsqueeze(iota(o.fusion, bins), 0), x.dtype);
  return sum(inDType(logicalAnd(eq(bin, numbers), isInside), x.dtype), [0]);
};

/** Rows of [M, K] times the matrix [E, K, N] of their group, where group e ends before row `offs[e]`. */
const groupedMatmul: AtenRow = (o) => {
  const [x, weights] = [o.tensor(o.has("input") ? "input" : "self"), o.tensor(o.has("weight") ? "weight" : "mat2")];
  const ends = inDType(o.tensor("offs"), "int64");
  if (x.rank !== 2 || weights.rank !== 3 || o.has("bias")) {
    return o.refuse("groups of another form", "rows [M, K] and matrices [E, K, N], without a bias");
  }
  const row = unsqueeze(iota(o.fusion, at(x.extents, 0)), 0);
  const starts = pad(ends, [[1, -1]]);
  const isOwn = logicalAnd(ge(row, unsqueeze(starts, 1)), lt(row, unsqueeze(ends, 1)));
  return sum(where(unsqueeze(isOwn, 2), matmul(unsqueeze(x, 0), weights), 0), [0]);
};

/** self[index] = values along the first axis. PyTorch leaves open which value an index that is there twice gives. */
const indexPut: AtenRow = (o) => {
  const [x, values, indices] = [o.tensor("self"), o.tensor("values"), o.tensorsOrNull("indices")];
  const [index] = indices;
  if (index === undefined || index === null || indices.length > 1 || index.rank !== 1 || x.rank !== 1) {
    return o.refuse("indices of several axes", "one index tensor of a tensor of one axis");
  }
  if (o.flag("accumulate", false)) return scatterAdd(x, 0, index, values);
  const none = zeros(o.fusion, x.extents, x.dtype);
  const hits = scatterAdd(zeros(o.fusion, x.extents, "int64"), 0, index, add(mul(index, 0), 1));
  return where(gt(hits, 0), scatterAdd(none, 0, index, values), x);
};

export const expertRows: AtenRows = new Map([
  ...atenRows({
    "topk.default": topK,
    "sort.default sort.stable": sort,
    "histc.default": histogram,
    "_grouped_mm.default": groupedMatmul,
    "index_put.default": indexPut,
    // Elements that the model never reads before it writes them.
    "empty.memory_format empty_like.default": (o) =>
      zeros(o.fusion, o.has("size") ? o.sizes("size") : o.tensor("self").extents, o.resultDType ?? "float"),
  }),
  ...atenRows({ "grouped_mm_fallback.default": groupedMatmul }, "torch.ops.transformers."),
]);
