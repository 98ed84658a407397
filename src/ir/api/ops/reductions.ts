/** Reductions over axes. */
import { reductionSpec } from "../../ops/kinds/reduction.ts";
import type { ReductionOpType } from "../../ops/op.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf } from "./apply.ts";

function reduction(op: ReductionOpType, tensor: TensorView, axes: readonly number[]): TensorView {
  const place = callOf(op, [tensor], axes);
  return apply(reductionSpec(op, tensor.data(), axes, place), [tensor], place);
}

/**
 * The sum over `axes`, in the tensor's dtype. The reduced axes stay in the output's logical domain (printed `r`), so
 * that `axis(i)` can parallelize them. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`, `dtype-mismatch`
 * (bool).
 */
export function sum(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("sum", tensor, axes);
}

/** The product over `axes`. Shapes, dtypes and errors as in `sum`. */
export function prod(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("prod", tensor, axes);
}

/**
 * The maximum over `axes`, NaN if any element is NaN. Takes bool, as a logical or. Shapes and other errors as in `sum`.
 */
export function amax(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("amax", tensor, axes);
}

/**
 * The minimum over `axes`, NaN if any element is NaN. Takes bool, as a logical and. Shapes and other errors as in
 * `sum`.
 */
export function amin(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("amin", tensor, axes);
}
