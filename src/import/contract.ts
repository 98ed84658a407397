/** Contractions of two tensors as `matmul`: any batch, contracted and free axes, in any order. */
import { matmul, reshape, squeeze } from "../ir/api/ops.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { foldProduct } from "../ir/scalar/fold.ts";
import type { Scalar } from "../ir/scalar/scalar.ts";
import { at } from "../support/invariant.ts";
import { permutedTo, withAxes } from "./views.ts";

/** Axes of both operands, in pairs. */
export interface AxisPairs {
  readonly left: readonly number[];
  readonly right: readonly number[];
}

/** The axes of the result: those of the batch, the free ones of the left operand, and those of the right one. */
export function contract(left: TensorView, right: TensorView, batch: AxisPairs, contracted: AxisPairs): TensorView {
  const freeLeft = freeAxes(left, [...batch.left, ...contracted.left]);
  const freeRight = freeAxes(right, [...batch.right, ...contracted.right]);
  const extentsOf = ({ extents }: TensorView, own: readonly number[]): readonly Scalar[] =>
    own.map((axis) => at(extents, axis));
  const depth = foldProduct(extentsOf(left, contracted.left));
  const batches = extentsOf(left, batch.left);
  // [batch, free of the left, contracted] x [batch, contracted, free of the right].
  let a = permutedTo(left, [...batch.left, ...freeLeft, ...contracted.left]);
  let b = permutedTo(right, [...batch.right, ...contracted.right, ...freeRight]);
  if (contracted.left.length !== 1) a = reshape(a, [...batches, ...extentsOf(left, freeLeft), depth]);
  if (contracted.right.length !== 1 || freeRight.length !== 1) {
    b = reshape(b, [...batches, depth, foldProduct(extentsOf(right, freeRight))]);
  }
  const firstFree = batches.length;
  if (freeLeft.length === 0) a = withAxes(a, firstFree, 1);
  // All free axes but the last are batch axes, along which the right operand repeats: a matrix does so as it is.
  else if (firstFree > 0) b = withAxes(b, firstFree, freeLeft.length - 1);
  const product = matmul(a, b);
  if (freeLeft.length > 0 && freeRight.length === 1) return product;
  const rest = freeLeft.length === 0 ? [firstFree] : [];
  const dropped = freeRight.length === 0 ? [...rest, product.rank - 1] : rest;
  if (freeRight.length < 2) return squeeze(product, dropped);
  return reshape(product, [...batches, ...extentsOf(left, freeLeft), ...extentsOf(right, freeRight)]);
}

function freeAxes({ extents }: TensorView, used: readonly number[]): readonly number[] {
  return extents.flatMap((_, axis) => (used.includes(axis) ? [] : [axis]));
}
