/** Views of tensors that readers of models share: each leaves a tensor that has the form already as it is. */
import { type BinaryOperand, broadcast, cast, expand, permute, where } from "../ir/api/ops.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { isComputed } from "../numerics/dtype.ts";
import { readExtents } from "./manual/parts.ts";

export function permutedTo(tensor: TensorView, order: readonly number[]): TensorView {
  return order.every((axis, i) => axis === i) ? tensor : permute(tensor, order);
}

export function expandedTo(tensor: TensorView, shape: readonly number[]): TensorView {
  return readExtents(tensor).every((extent, i) => extent === shape[i]) ? tensor : expand(tensor, shape);
}

/** A tensor with `rank` axes, of which those that `isNew` says are new and have the extent 1. */
export function broadcastTo(tensor: TensorView, rank: number, isNew: (axis: number) => boolean): TensorView {
  if (tensor.rank === rank) return tensor;
  const flags = Array.from({ length: rank }, (_, axis) => isNew(axis));
  return broadcast(tensor, flags);
}

/** With `count` axes of extent 1 in front of axis `position`. */
export function withAxes(tensor: TensorView, position: number, count: number): TensorView {
  return broadcastTo(tensor, tensor.rank + count, (axis) => axis >= position && axis < position + count);
}

/** With leading axes of extent 1 up to `rank`. A tensor without axes stays. */
export function raised(tensor: TensorView, rank: number): TensorView {
  return tensor.rank === 0 || tensor.rank >= rank ? tensor : withAxes(tensor, 0, rank - tensor.rank);
}

/** `where` of any dtype: numbers of dtypes that are only stored are chosen as floats. */
export function chosenBy(condition: TensorView, a: BinaryOperand, b: BinaryOperand): TensorView {
  const stored = [a, b].flatMap((each) => (typeof each === "object" && !isComputed(each.dtype) ? [each.dtype] : []));
  const [dtype] = stored;
  if (dtype === undefined) return where(condition, a, b);
  const [x, y] = [a, b].map((each) => (typeof each === "object" ? cast(each, "float") : each));
  return cast(where(condition, x ?? a, y ?? b), dtype);
}

/** A tensor of one axis as axis `axis` of `rank`, the others of extent 1. */
export function alongAxis(tensor: TensorView, axis: number, rank: number): TensorView {
  return broadcastTo(tensor, rank, (each) => each !== axis);
}
