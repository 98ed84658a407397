/** Operations that move elements without computing. */
import { broadcastSpec, permuteSpec, squeezeSpec, reshapeSpec } from "../../ops/kinds/views/broadcast.ts";
import { selectSpec, sliceSpec } from "../../ops/kinds/views/slice.ts";
import { type Extent, extentIn, extentText } from "../extent.ts";
import { internals } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf, extentsIn } from "./apply.ts";

/** A copy, of the same shape and dtype. Use it to change the sharding. Throws `bad-argument`. */
export function set(tensor: TensorView): TensorView {
  return apply({ kind: "Set" }, [tensor], callOf("set", [tensor]));
}

/**
 * Adds an axis of extent 1 for each true flag. The false flags stand for the tensor's axes, in order. Throws
 * `bad-argument`.
 */
export function broadcast(tensor: TensorView, flags: readonly boolean[]): TensorView {
  const place = callOf("broadcast", [tensor], flags);
  return apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
}

/** Removes `axes`, which must have extent 1. Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
export function squeeze(tensor: TensorView, axes: readonly number[]): TensorView {
  const place = callOf("squeeze", [tensor], axes);
  return apply(squeezeSpec(tensor.data(), axes, place), [tensor], place);
}

/**
 * Axis i of the output is axis `order[i]` of the tensor. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`.
 */
export function permute(tensor: TensorView, order: readonly number[]): TensorView {
  const place = callOf("permute", [tensor], order);
  return apply(permuteSpec(tensor.data(), order, place), [tensor], place);
}

/**
 * The same elements in row-major order under a new shape. An entry is a number, an axis of another tensor or its extent
 * (`x.axis(0)`, `x.extents[0]`), or -1, which is inferred and allowed once.
 * Throws `bad-extent`, `bad-argument`, `shape-mismatch`, `foreign-tensor`.
 */
export function reshape(tensor: TensorView, shape: readonly Extent[]): TensorView {
  const place = callOf("reshape", [tensor], shape.map(extentText));
  return apply(reshapeSpec(tensor.data(), extentsIn(tensor, shape, place), place), [tensor], place);
}

/**
 * The elements `starts[i] <= index < stops[i]` of every axis i, every `steps[i]`-th of them. Bounds may be axes or
 * extents of other tensors, as in `reshape`. Throws `index-out-of-range`, `bad-argument`, `foreign-tensor`.
 */
export function slice(
  tensor: TensorView,
  starts: readonly Extent[],
  stops: readonly Extent[],
  steps?: readonly number[],
): TensorView {
  const place = callOf("slice", [tensor], starts.map(extentText), stops.map(extentText), steps);
  const [from, to] = [extentsIn(tensor, starts, place), extentsIn(tensor, stops, place)];
  return apply(sliceSpec(tensor.data(), from, to, place, steps), [tensor], place);
}

/**
 * Removes `axis` at one index; a negative number counts from the end. The index may be an axis or extent of another
 * tensor, as in `reshape`. Throws `axis-out-of-range`, `index-out-of-range`, `bad-argument`, `foreign-tensor`.
 */
export function select(tensor: TensorView, axis: number, index: Extent): TensorView {
  const place = callOf("select", [tensor], axis, { code: extentText(index) });
  const known = extentIn(tensor[internals].builder, index, place);
  return apply(selectSpec(tensor.data(), axis, known, place), [tensor], place);
}
