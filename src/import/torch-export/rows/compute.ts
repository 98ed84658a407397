/** Rows of ATen ops that contract and reduce. */
import { axisIn, type NodeOperands } from "../operands.ts";
import { ne, clamp, eq, ge, gt, logicalAnd, where } from "../../../ir/api/ops/choices.ts";
import { argmax, mean, varMean } from "../../../ir/api/ops/compositions/statistics.ts";
import { inDType, keepAxes, wide } from "../../../ir/api/ops/compositions/compose.ts";
import { extreme } from "../../../ir/api/ops/compositions/own-gradients.ts";
import { logSoftmax, logsumexp, softmax } from "../../../ir/api/ops/compositions/softmax.ts";
import { linear, matmul, scaledMatmul, groupedMatmul } from "../../../ir/api/ops/contractions.ts";
import { add, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { abs, floor, logicalNot, neg, sqrt } from "../../../ir/api/ops/functions.ts";
import { cumprod, cumsum, argsort, sort, topk } from "../../../ir/api/ops/ordered.ts";
import { pow } from "../../../ir/api/ops/powers.ts";
import { amax, amin, prod, sum } from "../../../ir/api/ops/reductions.ts";
import { permute, reshape } from "../../../ir/api/ops/views.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { constantValue, extentsDiffer, foldProduct } from "../../../ir/scalar/fold.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { withAxes } from "../../views.ts";
import { einsum } from "./einsum.ts";
import { raised } from "../../views.ts";
import { asCount, factorIn } from "./elementwise.ts";
import { type AtenRow, type AtenRows, atenRows, isResults } from "./row.ts";
import { reshaped } from "./shape.ts";
import { iota, zeros } from "../../../ir/api/ops/creation.ts";
import { unsqueeze } from "../../../ir/api/ops/shape.ts";

const linearRow: AtenRow = (o) => {
  const bias = o.tensorOr("bias");
  const [x, weight] = [o.tensor("input"), o.tensor("weight")];
  return bias === null ? linear(x, weight) : linear(x, weight, bias);
};

/**
 * x @ w of a matrix x. Where x is a batch of rows that was merged for this op alone, the op runs on the batch: a
 * sharding of either axis then stays one of an axis.
 */
function rowsTimes(
  o: NodeOperands,
  x: TensorView,
  w: TensorView,
): { readonly y: TensorView; readonly merged: boolean } {
  const made = o.building.provenance.get(x.id);
  const base = made?.kind === "reshape" ? made.of : x;
  const keepsLast = base.rank > 2 && !extentsDiffer(at(base.extents, base.rank - 1), at(x.extents, 1));
  return keepsLast ? { y: matmul(base, w), merged: true } : { y: matmul(x, w), merged: false };
}

/** The rows of a batch as the matrix that PyTorch's op returns. */
function asMatrix(o: NodeOperands, y: TensorView, merged: boolean): TensorView {
  return merged ? reshaped(o, y, [foldProduct(y.extents.slice(0, -1)), at(y.extents, y.rank - 1)]) : y;
}

const mm: AtenRow = (o) => {
  const { y, merged } = rowsTimes(o, o.tensor("self"), o.tensor("mat2"));
  return asMatrix(o, y, merged);
};

/** Scales of one element may have axes there. Beside one of several, such a scale is of a row or a block, as it says. */
const scaledMm: AtenRow = (o) => {
  const [x, w, bias] = [o.tensor("self"), o.tensor("mat2"), o.tensorOr("bias")];
  if (o.tensorOr("scale_result") !== null) return o.refuse("a scale of the result", "scales of the operands");
  const [ofX, ofW] = [o.tensor("scale_a"), o.tensor("scale_b")];
  const isOne = ({ extents }: TensorView): boolean => extents.every((extent) => constantValue(extent) === 1);
  const areWhole = isOne(ofX) && isOne(ofW);
  const scaleOf = (scale: TensorView): TensorView => (areWhole && scale.rank > 0 ? reshape(scale, []) : scale);
  const dtype = o.dtype("out_dtype") ?? x.dtype;
  const options = { dtype, fastAccumulation: o.flag("use_fast_accum", false), ...(bias === null ? {} : { bias }) };
  return scaledMatmul(x, w, scaleOf(ofX), scaleOf(ofW), options);
};

/** alpha times a product, and beta times `self`, which is not read where beta is 0. */
function addedTo(o: NodeOperands, product: TensorView): TensorView {
  const [alpha, beta] = [factorIn(o, "alpha"), factorIn(o, "beta")];
  const scaled = alpha === 1 ? product : mul(product, alpha);
  if (beta === 0) return scaled;
  const bias = o.tensor("self");
  return add(scaled, raised(beta === 1 ? bias : mul(bias, beta), scaled.rank));
}

const addmm: AtenRow = (o) => {
  const [a, b] = [o.tensor("mat1"), o.tensor("mat2")];
  if (o.tensor("self").rank !== 1) return addedTo(o, matmul(a, b));
  const { y, merged } = rowsTimes(o, a, b);
  return asMatrix(o, addedTo(o, y), merged);
};

const baddbmm: AtenRow = (o) => addedTo(o, matmul(o.tensor("batch1"), o.tensor("batch2")));

function softmaxOf(apply: (x: TensorView, axis: number) => TensorView): AtenRow {
  return (o) => {
    const x = o.tensor("self");
    const dtype = o.dtype();
    return apply(dtype === null ? x : inDType(x, dtype), o.whole("dim"));
  };
}

/** The axes of a reduction: all where none are named. */
function axesOf(o: NodeOperands, x: TensorView): readonly number[] {
  const named = o.has("dim") ? o.wholes("dim").map((axis) => axisIn(axis, x.rank)) : [];
  return named.length > 0 ? named : [...x.extents.keys()];
}

function kept(o: NodeOperands, y: TensorView, axes: readonly number[], x: TensorView): TensorView {
  return o.flag("keepdim", false) ? keepAxes(y, axes, x) : y;
}

function reduction(apply: (x: TensorView, axes: readonly number[], o: NodeOperands) => TensorView): AtenRow {
  return (o) => {
    const given = o.tensor("self");
    const axes = axesOf(o, given);
    const dtype = o.dtype();
    const x = dtype === null ? given : inDType(given, dtype);
    return axes.length === 0 ? x : kept(o, apply(x, axes, o), axes, x);
  };
}

/** In float32 where the tensor is of 16 bits, in which a square may be infinite. */
const vectorNorm = reduction((given, axes, o) => {
  const x = wide(given);
  const order = o.number("ord", 2);
  if (order === Infinity) return amax(abs(x), axes);
  if (order === -Infinity) return amin(abs(x), axes);
  if (order === 0) return sum(inDType(ne(x, 0), x.dtype), axes);
  if (order === 1) return sum(abs(x), axes);
  return order === 2 ? rootOf(sum(mul(x, x), axes)) : pow(sum(pow(abs(x), order), axes), 1 / order);
});

/** Integers as floats of the result. */
function inFloat(o: NodeOperands, x: TensorView): TensorView {
  return dtypes[x.dtype].family === "float" ? x : inDType(x, o.resultDType ?? "float");
}

/** var(x), and the mean. A correction of more than there are elements divides by 0. */
function moments(o: NodeOperands): readonly [variance: TensorView, mean: TensorView] {
  const x = o.tensor("self");
  const axes = axesOf(o, x);
  const unbiased = o.flag("unbiased", true) ? 1 : 0;
  const count = constantValue(foldProduct(axes.map((axis) => at(x.extents, axis)))) ?? Infinity;
  const found = varMean(x, axes, Math.min(count, o.number("correction", unbiased)));
  return [kept(o, found.variance, axes, x), kept(o, found.mean, axes, x)];
}

/** The square root, whose slope at 0 is none. */
function rootOf(x: TensorView): TensorView {
  const isZero = eq(x, 0);
  return where(isZero, 0, sqrt(where(isZero, 1, x)));
}

/** The index of the largest element along an axis, or of all; of negated elements that of the smallest one. */
function extremeIndex(of: (x: TensorView) => TensorView): AtenRow {
  return (o) => {
    const x = o.tensor("self");
    const given = of(x);
    if (o.has("dim")) {
      const axis = axisIn(o.whole("dim"), x.rank);
      return kept(o, argmax(given, axis), [axis], x);
    }
    return kept(o, argmax(reshape(given, [foldProduct(x.extents)]), 0), [...x.extents.keys()], x);
  };
}

function extremeRow(which: "max" | "min"): AtenRow {
  return (o) => {
    const x = o.tensor("self");
    const axis = axisIn(o.whole("dim"), x.rank);
    return extreme(x, axis, which).map((y) => kept(o, y, [axis], x));
  };
}

/** Whether any, or every, element is not 0. An empty list names no axis. */
function quantified(apply: typeof amax): AtenRow {
  const over = reduction((x, axes) => apply(x, axes));
  return (o) => {
    const x = o.tensor("self");
    const flags = x.dtype === "bool" ? x : ne(x, 0);
    const named = o.has("dim") ? o.wholes("dim") : null;
    return named?.length === 0 ? flags : over({ ...o, tensor: () => flags });
  };
}

/** PyTorch sums integers in 64 bits. */
function counted(o: NodeOperands, x: TensorView): TensorView {
  const own = asCount(x);
  const dtype = o.resultDType ?? own.dtype;
  return dtypes[own.dtype].family === "integer" && dtypes[dtype].family === "integer" ? inDType(own, dtype) : own;
}

function cumulative(run: (tensor: TensorView, axis: number) => TensorView): AtenRow {
  return (o) => {
    const given = counted(o, o.tensor("self"));
    const x = inDType(given, o.dtype() ?? given.dtype);
    return run(x, axisIn(o.whole("dim"), x.rank));
  };
}

const products: Readonly<Record<string, AtenRow>> = {
  "linear.default(input weight bias)": linearRow,
  "matmul.default(self other)": (o) => matmul(o.tensor("self"), o.tensor("other")),
  "mm.default(self mat2)": mm,
  "_scaled_mm.default(self mat2 scale_a scale_b bias scale_result out_dtype use_fast_accum)": scaledMm,
  "mv.default(self vec)": (o) => matmul(o.tensor("self"), o.tensor("vec")),
  "bmm.default(self mat2)": (o) => matmul(o.tensor("self"), o.tensor("mat2")),
  "addmm.default(self mat1 mat2 * beta alpha)": addmm,
  "baddbmm.default(self batch1 batch2 * beta alpha)": baddbmm,
  "einsum.default(equation tensors * path)": einsum,
};

/** Rows that work along axes. */
const alongAxes: Readonly<Record<string, AtenRow>> = {
  "softmax.int _softmax.default _safe_softmax.default(self dim dtype)": softmaxOf(softmax),
  "log_softmax.int _log_softmax.default(self dim dtype)": softmaxOf(logSoftmax),
  "logsumexp.default(self dim keepdim)": reduction((x, axes, o) => logsumexp(inFloat(o, x), axes)),
  "sum.default(self * dtype) sum.dim_IntList(self dim keepdim)": reduction((x, axes, o) => sum(counted(o, x), axes)),
  "mean.default(self * dtype) mean.dim(self dim keepdim)": reduction((x, axes) => mean(x, axes)),
  "prod.default(self * dtype) prod.dim_int(self dim keepdim)": reduction((x, axes, o) => prod(counted(o, x), axes)),
  "amax.default(self dim keepdim) max.default(self)": reduction((x, axes) => amax(x, axes)),
  "amin.default(self dim keepdim) min.default(self)": reduction((x, axes) => amin(x, axes)),
  "linalg_vector_norm.default(self ord dim keepdim * dtype) norm.ScalarOpt_dim(self ord dim keepdim)": vectorNorm,
  "any.default any.dim any.dims(self dim keepdim)": quantified(amax),
  "all.default all.dim all.dims(self dim keepdim)": quantified(amin),
  "max.dim(self dim keepdim)": extremeRow("max"),
  "min.dim(self dim keepdim)": extremeRow("min"),
  "argmax.default(self dim keepdim)": extremeIndex((x) => x),
  "argmin.default(self dim keepdim)": extremeIndex(neg),
  "var.correction(self dim * correction keepdim) var.dim(self dim unbiased keepdim) var.default(self unbiased)": (o) =>
    moments(o)[0],
  "std.correction(self dim * correction keepdim) std.dim(self dim unbiased keepdim) std.default(self unbiased)": (o) =>
    rootOf(moments(o)[0]),
  "var_mean.correction(self dim * correction keepdim) var_mean.dim(self dim unbiased keepdim) var_mean.default(self unbiased)":
    (o) => moments(o),
  "std_mean.correction(self dim * correction keepdim) std_mean.dim(self dim unbiased keepdim) std_mean.default(self unbiased)":
    (o) => {
      const [variance, average] = moments(o);
      return [rootOf(variance), average];
    },
  "cumsum.default(self dim * dtype)": cumulative(cumsum),
  "cumprod.default(self dim * dtype)": cumulative(cumprod),
};

/** A tensor without axes has an axis of extent 1 to PyTorch, which `dim` may name. */
function withAnAxis(row: AtenRow): AtenRow {
  return (o) => {
    const x = o.tensor("self");
    if (x.rank > 0) return row(o);
    const made = row({ ...o, tensor: (name) => (name === "self" ? withAxes(x, 0, 1) : o.tensor(name)) });
    const without = (y: TensorView | null): TensorView | null => (y?.rank === 1 ? reshape(y, []) : y);
    if (isResults(made)) return made.map(without);
    return "kind" in made ? made : (without(made) ?? made);
  };
}

const withAnAxisEach = (rows: Readonly<Record<string, AtenRow>>): Readonly<Record<string, AtenRow>> =>
  Object.fromEntries(Object.entries(rows).map(([names, row]) => [names, withAnAxis(row)]));

export const computeRows: AtenRows = atenRows({ ...products, ...withAnAxisEach(alongAxes) });

/*
 * Rows of the ops with which mixtures of experts route tokens: top-k, sorting, counting and grouped matmul.
 */

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

export const expertRows: AtenRows = new Map([
  ...atenRows(
    withAnAxisEach({
      "topk.default(self k dim largest sorted)": topK,
      "sort.default sort.stable(self dim descending * stable)": sorted,
      "argsort.default argsort.stable(self dim descending * stable)": (o) => {
        const x = o.tensor("self");
        return argsort(x, axisIn(o.whole("dim", -1), x.rank), { descending: o.flag("descending", false) });
      },
    }),
  ),
  ...atenRows({
    "histc.default(self bins min max)": histogram,
    "_grouped_mm.default(self mat2 offs bias out_dtype)": groupedMm,
    // Elements that the model never reads before it writes them.
    "empty.memory_format(size * factory) empty_like.default(self * factory)": (o) =>
      zeros(o.fusion, o.has("size") ? o.sizes("size") : o.tensor("self").extents, o.resultDType ?? "float"),
  }),
  ...atenRows({ "grouped_mm_fallback.default(input weight offs)": groupedMm }, "torch.ops.transformers."),
]);
