/** Reads and sums at indices that a tensor holds. Indices are int or int64; those outside of an axis read 0. */
import { dtypes } from "../../../numerics/dtype.ts";
import { promoteDTypes } from "../../ops/dtype-rules.ts";
import { gatherSpec, indexSelectSpec, scatterAddSpec } from "../../ops/kinds/indexing.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf, castTo } from "./apply.ts";

/**
 * The elements at `index` along `axis`, whose place the axes of `index` take: [V, h] at [B, T] along 0 gives [B, T, h].
 * An index that is negative or too large gives 0. Throws `axis-out-of-range`, `dtype-mismatch`, `foreign-tensor`.
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
 * One element along `axis` per element of `index`, which has the tensor's rank and its extents on all other axes:
 * numpy's take_along_axis. An index that is negative or too large gives 0. Throws `axis-out-of-range`,
 * `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`.
 */
export function gather(tensor: TensorView, axis: number, index: TensorView): TensorView {
  const place = callOf("gather", [tensor, index], axis);
  return apply(gatherSpec(tensor.data(), axis, place), [tensor, index], place);
}

/**
 * Adds each element of `source` to the tensor's element at its index along `axis`. `index` and `source` have one shape,
 * and the tensor's extents on all other axes. Sums start with the tensor's element and add in the order of the source,
 * with one rounding of half and bfloat16: every run gives the same bits. An index that is negative or too large adds
 * nothing. Throws `axis-out-of-range`, `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`.
 */
export function scatterAdd(tensor: TensorView, axis: number, index: TensorView, source: TensorView): TensorView {
  const place = callOf("scatterAdd", [tensor, index, source], axis);
  const spec = scatterAddSpec([tensor.data(), index.data(), source.data()], axis, place);
  const dtype = promoteDTypes(tensor.dtype, source.dtype);
  const wide = dtypes[dtype].family === "float" && dtype !== "double" ? "float" : dtype;
  const operands = [castTo(tensor, wide, place), index, castTo(source, wide, place)];
  return castTo(apply(spec, operands, place), dtype, place);
}
