/** Means and variances. */
import { at } from "../../../../support/invariant.ts";
import { type Call, resolveAxes, resolveAxis } from "../../../ops/call.ts";
import { constantValue, foldProduct } from "../../../scalar/fold.ts";
import type { TensorView } from "../../tensor-view.ts";
import { add, cast, div, mul, sub } from "../elementwise.ts";
import { sum, amax, amin } from "../reductions.ts";
import { floatCall, inDType, keepAxes, mark, wide, indicesAlong } from "./compose.ts";
import { callOf } from "../apply.ts";
import { eq, isnan, logicalOr, where } from "../choices.ts";

/**
 * The mean over `axes`. 16-bit floats are added and divided in float. Shapes as in `sum`. Throws `axis-out-of-range`,
 * `axis-repeated`, `bad-argument`, `dtype-mismatch` (integers and bool).
 */
export function mean(tensor: TensorView, axes: readonly number[]): TensorView {
  floatCall("mean", [tensor], axes);
  return inDType(meanOf(wide(tensor), axes), tensor.dtype);
}

export interface Moments {
  readonly mean: TensorView;
  readonly variance: TensorView;
}

/**
 * The mean and the variance, which divides by the number of elements less `correction`. Two passes, so that the bits do
 * not depend on how devices share a row. Dtypes and errors as in `mean`.
 */
export function varMean(tensor: TensorView, axes: readonly number[], correction = 1): Moments {
  const place = floatCall("varMean", [tensor], axes, correction);
  const x = wide(tensor);
  const average = meanOf(x, axes);
  const resolved = resolveAxes(axes, x.rank, place);
  const distance = sub(x, keepAxes(average, resolved, x));
  const variance = inDType(perElement(sum(mul(distance, distance), axes), x, axes, correction), tensor.dtype);
  const mean = inDType(average, tensor.dtype);
  mark(mean, {
    name: "varMean",
    operands: { x: tensor.id },
    outputs: [mean.id, variance.id],
    kept: [average.id],
    axes: resolved,
    correction,
  });
  return { mean, variance };
}

/** The mean in the dtype of the tensor. */
export function meanOf(x: TensorView, axes: readonly number[]): TensorView {
  return perElement(sum(x, axes), x, axes, 0);
}

/** A sum over `axes` of `x`, divided by the number of elements less `correction`. */
export function perElement(total: TensorView, x: TensorView, axes: readonly number[], correction: number): TensorView {
  const count = constantValue(foldProduct(axes.map((axis) => at(x.extents, axis < 0 ? axis + x.rank : axis))));
  if (count !== null) return div(total, count - correction);
  const ones = add(mul(cast(x, "int"), 0), 1);
  return div(total, cast(add(sum(ones, axes), -correction), x.dtype));
}

export function lastAxis({ rank }: TensorView, place: Call): number {
  return at(resolveAxes([-1], rank, place), 0);
}

/* Where the largest element is, by ops that any sharding of the axis allows. */

/**
 * The index along `axis` of the first largest element, as int64; NaN is the largest, as in PyTorch. Takes bool. The
 * reduced axis stays in the output's logical domain, as in `sum`. An axis without elements has no index: the result is
 * beyond it. Throws `axis-out-of-range`.
 */
export function argmax(tensor: TensorView, axis: number): TensorView {
  const place = callOf("argmax", [tensor], axis);
  const own = resolveAxis(axis, tensor.rank, place);
  const most = keepAxes(amax(tensor, [own]), [own], tensor);
  const isMost = logicalOr(eq(tensor, most), isnan(tensor));
  const first = amin(where(isMost, indicesAlong(tensor, own, place), Number.MAX_SAFE_INTEGER), [own]);
  mark(first, { name: "argmax", operands: { x: tensor.id }, outputs: [first.id], kept: [], axes: [own] });
  return first;
}
