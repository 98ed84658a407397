/** Scans and sorts along an axis, of which a device needs all; one-hot rows and triangles, by comparing indices. */
import type { DType } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type Call, reject, resolveAxis } from "../../ops/call.ts";
import { argsortSpec, scanSpec } from "../../ops/kinds/reduction.ts";
import type { ReductionOpType } from "../../ops/op.ts";
import { constantValue } from "../../scalar/fold.ts";
import { constant } from "../../scalar/scalar.ts";
import { type Extent, knownExtent } from "../extent.ts";
import { internals } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf } from "./apply.ts";
import { eq, ge, le, where } from "./choices.ts";
import { inDType, indicesAlong } from "./compositions/compose.ts";
import { sub } from "./elementwise.ts";
import { gather } from "./indexing.ts";
import { unsqueeze } from "./shape.ts";
import { slice } from "./views.ts";

/** For the gradients of scans: in reverse, element i combines those from i on. */
export function scan(
  op: ReductionOpType,
  tensor: TensorView,
  axis: number,
  reverse = false,
  place = callOf("scan", [tensor], axis),
): TensorView {
  return apply(scanSpec(op, tensor.data(), axis, reverse, place), [tensor], place);
}

/**
 * The sums along `axis` up to each index, in the tensor's dtype. 16-bit floats are added in float, and each result is
 * rounded once. Throws `axis-out-of-range`, `dtype-mismatch` (bool).
 */
export function cumsum(tensor: TensorView, axis: number): TensorView {
  return scan("sum", tensor, axis, false, callOf("cumsum", [tensor], axis));
}

/** The products along `axis` up to each index. Dtypes and errors as in `cumsum`. */
export function cumprod(tensor: TensorView, axis: number): TensorView {
  return scan("prod", tensor, axis, false, callOf("cumprod", [tensor], axis));
}

/**
 * The largest elements along `axis` up to each index, NaN from the first NaN on. Takes bool. Throws
 * `axis-out-of-range`.
 */
export function cummax(tensor: TensorView, axis: number): TensorView {
  return scan("amax", tensor, axis, false, callOf("cummax", [tensor], axis));
}

/** The smallest elements along `axis` up to each index. NaN, dtypes and errors as in `cummax`. */
export function cummin(tensor: TensorView, axis: number): TensorView {
  return scan("amin", tensor, axis, false, callOf("cummin", [tensor], axis));
}

export interface SortOptions {
  /** The largest element first. The default is false. */
  readonly descending?: boolean;
}

/** Elements in an order, and their indices along the axis, as int64. */
export interface Sorted {
  readonly values: TensorView;
  readonly indices: TensorView;
}

/**
 * The indices that sort `axis`, stably, as int64. Equal elements keep their order, -0 equals 0, and NaN is the largest,
 * in either direction. Throws `axis-out-of-range`.
 */
export function argsort(tensor: TensorView, axis: number, { descending = false }: SortOptions = {}): TensorView {
  const place = callOf("argsort", [tensor], axis);
  return apply(argsortSpec(tensor.data(), axis, descending, place), [tensor], place);
}

/** The elements sorted along `axis`, and their indices. The order is that of `argsort`. Throws `axis-out-of-range`. */
export function sort(tensor: TensorView, axis: number, { descending = false }: SortOptions = {}): Sorted {
  const place = callOf("sort", [tensor], axis);
  const own = resolveAxis(axis, tensor.rank, place);
  const indices = apply(argsortSpec(tensor.data(), own, descending, place), [tensor], place);
  return { values: gather(tensor, own, indices), indices };
}

/**
 * The `k` largest elements along `axis` in descending order, or smallest (`largest: false`), and their indices. Of
 * equal elements the first come first, and NaN is the largest. Throws `axis-out-of-range`, `bad-argument`.
 */
export function topk(
  tensor: TensorView,
  k: number,
  axis = -1,
  { largest = true }: { readonly largest?: boolean } = {},
): Sorted {
  const place = callOf("topk", [tensor], k, axis);
  const own = resolveAxis(axis, tensor.rank, place);
  requireCount(k, constantValue(at(tensor.extents, own)), place);
  const order = apply(argsortSpec(tensor.data(), own, largest, place), [tensor], place);
  const indices = slice(
    order,
    order.extents.map(() => 0),
    order.extents.with(own, constant(k)),
  );
  return { values: gather(tensor, own, indices), indices };
}

function requireCount(k: number, extent: number | null, place: Call): void {
  if (Number.isInteger(k) && k > 0 && k <= (extent ?? k)) return;
  reject(place, "bad-argument", "the axis does not have k elements", {
    found: `k = ${k}${extent === null ? "" : `, an axis of ${extent}`}`,
    expected: extent === null ? "a whole number from 1 on" : `a whole number from 1 to ${extent}`,
    help: "take fewer elements, or a longer axis",
  });
}

/**
 * Rows with 1 at the index and 0 elsewhere, along a new last axis of `classes`. They are int64 unless `dtype` is given.
 * An index that is negative or too large gives a row of 0. Throws `bad-extent`, `dtype-mismatch`.
 */
export function oneHot(
  index: TensorView,
  classes: Extent,
  { dtype = "int64" }: { readonly dtype?: DType } = {},
): TensorView {
  const place = callOf("oneHot", [index]);
  const extent = knownExtent(index[internals].builder, classes, place);
  const column = unsqueeze(index, -1);
  return inDType(eq(column, indicesAlong(column, -1, place, extent)), dtype);
}

/** The last two axes from diagonal `diagonal` on up, and 0 below, as torch.triu. */
export function triu(tensor: TensorView, diagonal = 0): TensorView {
  return where(ge(offDiagonal("triu", tensor, diagonal), diagonal), tensor, 0);
}

/** The last two axes up to diagonal `diagonal`, and 0 above. */
export function tril(tensor: TensorView, diagonal = 0): TensorView {
  return where(le(offDiagonal("tril", tensor, diagonal), diagonal), tensor, 0);
}

/** The column less the row. Throws `axis-out-of-range`, `bad-argument`. */
function offDiagonal(name: string, tensor: TensorView, diagonal: number): TensorView {
  const place = callOf(name, [tensor], diagonal);
  if (!Number.isSafeInteger(diagonal)) {
    reject(place, "bad-argument", "the diagonal is not a whole number", {
      found: String(diagonal),
      expected: "a whole number: 0 for the main one, and 1 for the one above it",
      help: "leave it out for the main diagonal",
    });
  }
  return sub(indicesAlong(tensor, -1, place), indicesAlong(tensor, -2, place));
}
