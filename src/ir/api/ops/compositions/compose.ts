/** What compositions share. 16-bit floats are computed in float and rounded once, at the end, as PyTorch does. */
import { type DType, dtypes } from "../../../../numerics/dtype.ts";
import type { Marker } from "../../../fusion-data.ts";
import { at } from "../../../../support/invariant.ts";
import { type Call, reject, resolveAxis, shapeText } from "../../../ops/call.ts";
import { requireFloat } from "../../../ops/dtype-rules.ts";
import { iotaSpec } from "../../../ops/kinds/creation.ts";
import { scatterAddSpec } from "../../../ops/kinds/indexing.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { constant, type Scalar } from "../../../scalar/scalar.ts";
import { internals } from "../../handle.ts";
import type { TensorView } from "../../tensor-view.ts";
import { apply, applyIn, callOf } from "../apply.ts";
import { cast } from "../elementwise.ts";
import { broadcast } from "../views.ts";

/** The call, for operands that are floats. Throws `dtype-mismatch`, `bad-argument`. */
export function floatCall(
  name: string,
  operands: readonly TensorView[],
  ...args: readonly (number | readonly number[])[]
): Call {
  const place = callOf(name, operands, ...args);
  for (const { dtype } of operands) requireFloat(dtype, name, place);
  return place;
}

/** The tensor in a dtype, which it may have already. */
export function inDType(tensor: TensorView, dtype: DType): TensorView {
  return tensor.dtype === dtype ? tensor : cast(tensor, dtype);
}

/** The tensor in the dtype in which compositions compute. */
export function wide(tensor: TensorView): TensorView {
  return inDType(tensor, dtypes[tensor.dtype].bytes === 2 ? "float" : tensor.dtype);
}

/** Gives a tensor that lacks `axes` of `x` these axes, with extent 1. */
export function keepAxes(reduced: TensorView, axes: readonly number[], { rank }: TensorView): TensorView {
  return broadcast(
    reduced,
    Array.from({ length: rank }, (_, axis) => axes.includes(axis)),
  );
}

/** Gives a tensor of the trailing axes of `x` the leading ones, with extent 1. */
export function alignRight(tensor: TensorView, { rank }: TensorView): TensorView {
  if (tensor.rank >= rank) return tensor;
  return broadcast(
    tensor,
    Array.from({ length: rank }, (_, axis) => axis < rank - tensor.rank),
  );
}

/** Checks a weight or bias of the last axis of `x`. Throws `shape-mismatch`. */
export function requireOfLastAxis(tensor: TensorView, x: TensorView, what: string, place: Call): void {
  const [own, last] = [tensor.extents[0], x.extents.at(-1)];
  if (tensor.rank === 1 && own !== undefined && last !== undefined && !extentsDiffer(own, last)) return;
  reject(place, "shape-mismatch", `the ${what} does not have the last axis of the tensor`, {
    found: `${shapeText(tensor.data())} for ${shapeText(x.data())}`,
    expected: "one axis, of the extent of the last one",
    help: `give the ${what} one element per index of the last axis`,
  });
}

/** The indices along `axis` of `tensor`, or of `extent` elements from `start` on, as int64 with extent 1 on its other axes. */
export function indicesAlong(
  tensor: TensorView,
  axis: number,
  place: Call,
  extent: Scalar = at(tensor.extents, resolveAxis(axis, tensor.rank, place)),
  start: Scalar = constant(0),
): TensorView {
  const own = resolveAxis(axis, tensor.rank, place);
  const indices = iotaSpec(extent, start, constant(1), "int64", place);
  return broadcast(
    applyIn(tensor[internals].builder, indices, [], place),
    Array.from({ length: tensor.rank }, (_, i) => i !== own),
  );
}

/**
 * The tensor with each element of `source` at its index along `axis`, as in `scatterAdd`. Of equal indices the last
 * counts.
 */
export function scatterSet(
  tensor: TensorView,
  axis: number,
  index: TensorView,
  source: TensorView,
  sets: "any" | "below" = "any",
): TensorView {
  const place = callOf("scatterSet", [tensor, index, source], axis);
  const spec = scatterAddSpec([tensor.data(), index.data(), source.data()], axis, place, sets);
  return apply(spec, [tensor, index, source], place);
}

/** Remembers the composition that made `output` for `gradients`. */
export function mark(output: TensorView, marker: Marker): void {
  const { builder } = output[internals];
  builder.markers.push(marker);
  builder.snapshot = null;
}
