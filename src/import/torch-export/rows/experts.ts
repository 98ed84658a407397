/**
 * Rows of the ops with which mixtures of experts route tokens: top-k, sorting, counting and grouped matmul.
 */
import { clamp, eq, ge, gt, logicalAnd, where } from "../../../ir/api/ops/choices.ts";
import { inDType } from "../../../ir/api/ops/compositions/compose.ts";
import { groupedMatmul } from "../../../ir/api/ops/contractions.ts";
import { iota, zeros } from "../../../ir/api/ops/creation.ts";
import { add, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { floor, logicalNot } from "../../../ir/api/ops/functions.ts";
import { scatterAdd } from "../../../ir/api/ops/indexing.ts";
import { argsort, sort, topk } from "../../../ir/api/ops/ordered.ts";
import { sum } from "../../../ir/api/ops/reductions.ts";
import { unsqueeze } from "../../../ir/api/ops/shape.ts";
import { permute, reshape } from "../../../ir/api/ops/views.ts";
import { axisIn } from "../operands.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";

/** Sorted or not asked for, the elements come in order. */
const topK: AtenRow = (o) => {
  const x = o.tensor("self");
  const found = topk(x, o.whole("k"), axisIn(o.whole("dim", -1), x.rank), { largest: o.flag("largest", true) });
  return [found.values, found.indices];
};

const sorted: AtenRow = (o) => {
  const x = o.tensor("self");
  const found = sort(x, axisIn(o.whole("dim", -1), x.rank), { descending: o.flag("descending", false) });
  return [found.values, found.indices];
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

/** Rows of [M, K] times the matrix [E, K, N] of their group, or [M, K] [K, N] in groups of K. */
const groupedMm: AtenRow = (o) => {
  const [x, weights] = [o.tensor(o.has("input") ? "input" : "self"), o.tensor(o.has("weight") ? "weight" : "mat2")];
  if (x.rank !== 2 || weights.rank > 3 || o.has("bias")) {
    return o.refuse("groups of another form", "[M, K] and [E, K, N] or [K, N], without a bias");
  }
  return groupedMatmul(weights.rank === 3 ? x : permute(x, [1, 0]), weights, o.tensor("offs"));
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
    "sort.default sort.stable": sorted,
    "argsort.default argsort.stable": (o) => {
      const x = o.tensor("self");
      return argsort(x, axisIn(o.whole("dim", -1), x.rank), { descending: o.flag("descending", false) });
    },
    "histc.default": histogram,
    "_grouped_mm.default": groupedMm,
    "index_put.default": indexPut,
    // Elements that the model never reads before it writes them.
    "empty.memory_format empty_like.default": (o) =>
      zeros(o.fusion, o.has("size") ? o.sizes("size") : o.tensor("self").extents, o.resultDType ?? "float"),
  }),
  ...atenRows({ "grouped_mm_fallback.default": groupedMm }, "torch.ops.transformers."),
]);
