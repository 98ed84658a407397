/** Reads, writes and sums at indices that a tensor holds. Indices are int or int64; those outside of an axis read 0. */
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type Call, reject, requireExtent, resolveAxis, shapeText } from "../../ops/call.ts";
import { promoteDTypes, requireComputed } from "../../ops/dtype-rules.ts";
import { gatherSpec, indexSelectSpec, requireIndex, scatterAddSpec } from "../../ops/kinds/indexing.ts";
import { extentsDiffer, isConstant } from "../../scalar/fold.ts";
import { constant } from "../../scalar/scalar.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf, castTo, stretchTo } from "./apply.ts";
import { indicesAlong, scatterSet } from "./compositions/compose.ts";
import { add } from "./elementwise.ts";
import { expand } from "./shape.ts";
import { squeeze } from "./views.ts";

/**
 * The elements at `index` along `axis`, whose place its axes take: [V, h] at [B, T] along 0 gives [B, T, h]. An index
 * that is negative or too large gives 0. Throws `axis-out-of-range`, `dtype-mismatch`, `foreign-tensor`.
 */
export function indexSelect(tensor: TensorView, axis: number, index: TensorView): TensorView {
  const place = callOf("indexSelect", [tensor, index], axis);
  return apply(indexSelectSpec(tensor.data(), axis, place), [tensor, index], place);
}

/** The rows of `table` at `index`: `indexSelect` along axis 0. */
export function embedding(table: TensorView, index: TensorView): TensorView {
  const place = callOf("embedding", [table, index]);
  return apply(indexSelectSpec(table.data(), 0, place), [table, index], place);
}

/**
 * One element along `axis` per element of `index`: numpy's take_along_axis. `index` has the tensor's rank, and its
 * extents on all other axes. An index that is negative or too large gives 0. Throws `axis-out-of-range`,
 * `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`.
 */
export function gather(tensor: TensorView, axis: number, index: TensorView): TensorView {
  const place = callOf("gather", [tensor, index], axis);
  return apply(gatherSpec(tensor.data(), axis, place), [tensor, index], place);
}

/**
 * Adds each element of `source` to the element at its index along `axis`. `index` and `source` have one shape, and the
 * tensor's extents on all other axes. Sums start with the tensor's element and add in the order of the source, with one
 * rounding of half and bfloat16: every run gives the same bits. An index that is negative or too large adds nothing.
 * Throws `axis-out-of-range`, `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`.
 */
export function scatterAdd(tensor: TensorView, axis: number, index: TensorView, source: TensorView): TensorView {
  const place = callOf("scatterAdd", [tensor, index, source], axis);
  const spec = scatterAddSpec([tensor.data(), index.data(), source.data()], axis, place);
  for (const each of [tensor, source]) requireComputed(each.dtype, place);
  const dtype = promoteDTypes(tensor.dtype, source.dtype);
  const wide = dtypes[dtype].family === "float" && dtype !== "double" ? "float" : dtype;
  const operands = [castTo(tensor, wide, place), index, castTo(source, wide, place)];
  return castTo(apply(spec, operands, place), dtype, place);
}

/**
 * `size` elements along `axis` from index `start` on, a tensor of integers. `start` has no axes, or the axes of the
 * tensor with its extents or 1, and 1 along `axis`. Places outside of the axis give 0. Throws `axis-out-of-range`,
 * `dtype-mismatch`, `shape-mismatch`, `foreign-tensor`.
 */
export function dynamicSlice(tensor: TensorView, axis: number, start: TensorView, size: number): TensorView {
  const place = callOf("dynamicSlice", [tensor, start], axis, size);
  const own = resolveAxis(axis, tensor.rank, place);
  const first = startOf(start, tensor, own, place);
  return selectAlong(tensor, own, add(first, indicesAlong(tensor, own, place, constant(requireExtent(size, place)))));
}

/**
 * The tensor with `update` in place of its elements along `axis` from index `start` on. `start` is as in
 * `dynamicSlice`. Other axes of `update` have the tensor's extents, or 1. What lies before the axis is not written, and
 * what lies past its end ends the run. Throws `axis-out-of-range`, `dtype-mismatch`, `shape-mismatch`,
 * `foreign-tensor`.
 */
export function dynamicUpdate(tensor: TensorView, axis: number, start: TensorView, update: TensorView): TensorView {
  const place = callOf("dynamicUpdate", [tensor, start, update], axis);
  const own = resolveAxis(axis, tensor.rank, place);
  requireFits(update, tensor, own, "update", place);
  const extents = tensor.extents.with(own, at(update.extents, own));
  const index = add(startOf(start, tensor, own, place), indicesAlong(update, own, place));
  const source = expand(castTo(update, tensor.dtype, place), extents);
  return scatterSet(tensor, own, expand(index, extents), source, "below");
}

/** The start with the axes of the tensor. */
function startOf(start: TensorView, tensor: TensorView, axis: number, place: Call): TensorView {
  requireIndex(start.data(), place);
  if (start.rank > 0) requireFits(start, tensor, axis, "start", place);
  return stretchTo(castTo(start, "int64", place), tensor.rank, place);
}

/** Throws `shape-mismatch` unless axes but `axis` have the extents of `like`, or 1. */
function requireFits(tensor: TensorView, like: TensorView, axis: number, what: "start" | "update", place: Call): void {
  const fits = tensor.extents.every((extent, i) => {
    if (i === axis) return what === "update" || isConstant(extent, 1);
    return isConstant(extent, 1) || !extentsDiffer(extent, like.extents[i] ?? extent);
  });
  if (tensor.rank === like.rank && fits) return;
  reject(place, "shape-mismatch", `the ${what} has other axes than the tensor`, {
    found: `${shapeText(tensor.data())} for ${shapeText(like.data())}`,
    expected: `the tensor's extents, or 1, along each axis but ${axis}${what === "start" ? ", and 1 along that" : ""}`,
    help: what === "start" ? "give one start without axes, or one for each row" : "expand or slice the update",
  });
}

/** The elements at `index` along `axis`. The two have one rank, and extents of 1 stretch on other axes. */
function selectAlong(tensor: TensorView, axis: number, index: TensorView): TensorView {
  const others = [...index.extents.keys()].filter((i) => i !== axis);
  if (others.every((i) => isConstant(at(index.extents, i), 1)))
    return indexSelect(tensor, axis, squeeze(index, others));
  const wide = tensor.extents.map((extent, i) => (isConstant(extent, 1) ? at(index.extents, i) : extent));
  const stretched = (each: TensorView): TensorView => expand(each, wide.with(axis, at(each.extents, axis)));
  return gather(stretched(tensor), axis, stretched(index));
}
