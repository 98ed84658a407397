/**
 * An OpSpec is an op before it has operands and an output: what a call asks for, with axes counted from 0 and checked
 * against the tensor. Each function here makes one from a call's arguments and throws the call's diagnostics.
 * infer-output.ts says what an op of that spec puts out.
 */
import { type Call, reject, requireExtent, resolveAxes, resolveAxis, shapeText } from "./call.ts";
import { isUnitAxis, type Tensor, withoutReductions } from "../domain.ts";
import type { Op, ReductionOpType } from "./op.ts";
import { constant, type Scalar } from "../scalar/scalar.ts";
import { constantValue, foldAdd, foldDiv, foldProduct } from "../scalar/fold.ts";
import { printScalar } from "../scalar/print.ts";
import { at } from "../../support/invariant.ts";

export type OpSpec = SpecOf<Op>;
export type OpSpecOf<K extends Op["kind"]> = Extract<OpSpec, { kind: K }>;

type SpecOf<T> = T extends Op
  ? Omit<T, "inputs" | "output"> &
      // A reshape's target stands in its output alone.
      (T extends { kind: "Reshape" } ? { readonly extents: readonly Scalar[] } : unknown)
  : never;

const rankOf = (tensor: Tensor): number => withoutReductions(tensor.domain.logical).length;

export function reductionSpec(
  op: ReductionOpType,
  tensor: Tensor,
  axes: readonly number[],
  place: Call,
): OpSpecOf<"Reduction"> {
  if (axes.length === 0) {
    reject(place, {
      code: "bad-argument",
      message: "a reduction needs at least one axis",
      found: "no axes",
      expected: "the axes to reduce, for example [0]",
      help: "name the axes, or leave the reduction out",
    });
  }
  return { kind: "Reduction", op, axes: resolveAxes(axes, rankOf(tensor), place) };
}

/** One flag per axis of the output; the false ones are the tensor's own axes. */
export function broadcastSpec(tensor: Tensor, flags: readonly boolean[], place: Call): OpSpecOf<"Broadcast"> {
  const kept = flags.filter((flag) => !flag).length;
  const rank = rankOf(tensor);
  if (kept !== rank) {
    reject(place, {
      code: "bad-argument",
      message: "the flags of a broadcast do not name the tensor's axes",
      found: `${kept} false flag${kept === 1 ? "" : "s"} for ${shapeText(tensor)}`,
      expected: `${rank} false flag${rank === 1 ? "" : "s"}, one per axis of the tensor, and true for each new axis`,
      help: "give one flag per axis of the output",
    });
  }
  return { kind: "Broadcast", flags: [...flags] };
}

export function squeezeSpec(tensor: Tensor, axes: readonly number[], place: Call): OpSpecOf<"Squeeze"> {
  const resolved = resolveAxes(axes, rankOf(tensor), place);
  const domain = withoutReductions(tensor.domain.logical);
  for (const axis of resolved) {
    const { extent } = at(domain, axis);
    if (isUnitAxis(at(domain, axis))) continue;
    reject(place, {
      code: "shape-mismatch",
      message: `squeeze removes axis ${axis}, which has more than one element or an unknown number`,
      found: `extent ${printScalar(extent)}`,
      expected: "extent 1",
      help: "squeeze only axes of extent 1; use sum() or select() for others",
    });
  }
  return { kind: "Squeeze", axes: resolved };
}

export function permuteSpec(tensor: Tensor, order: readonly number[], place: Call): OpSpecOf<"Permute"> {
  const rank = rankOf(tensor);
  const resolved = resolveAxes(order, rank, place);
  if (resolved.length !== rank) {
    reject(place, {
      code: "bad-argument",
      message: "the order of a permute does not name every axis",
      found: `${resolved.length} of ${rank} axes`,
      expected: "every axis of the tensor exactly once",
      help: "list all axes in their new order",
    });
  }
  return { kind: "Permute", order: resolved };
}

/** `shape` holds extents; at most one -1 stands for what is left over. */
export function reshapeSpec(tensor: Tensor, shape: readonly (number | Scalar)[], place: Call): OpSpecOf<"Reshape"> {
  const total = foldProduct(withoutReductions(tensor.domain.logical).map((axis) => axis.extent));
  const given = shape.flatMap((entry) => (entry === -1 ? [] : [toExtent(entry, place)]));
  if (shape.length - given.length > 1) {
    reject(place, {
      code: "bad-argument",
      message: "a shape has more than one -1",
      found: `${shape.length - given.length} times -1`,
      expected: "at most one -1",
      help: "write all extents but one",
    });
  }
  const product = foldProduct(given);
  const from = constantValue(total);
  const to = constantValue(product);
  const infers = given.length < shape.length;
  if (from !== null && to !== null && (infers ? from % to !== 0 : from !== to)) {
    reject(place, {
      code: "shape-mismatch",
      message: "a reshape would change the number of elements",
      found: `${from} elements in ${shapeText(tensor)}, ${infers ? `a multiple of ${to}` : to} in the new shape`,
      expected: "the same number of elements",
      help: "choose extents whose product is that of the tensor's",
    });
  }
  const rest = foldDiv(total, product);
  return {
    kind: "Reshape",
    extents: shape.map((entry) => (entry === -1 ? rest : toExtent(entry, place))),
  };
}

function toExtent(entry: number | Scalar, place: Call): Scalar {
  return typeof entry === "number" ? constant(requireExtent(entry, place)) : entry;
}

/** `[starts[i], stops[i])` of every axis i. */
export function sliceSpec(
  tensor: Tensor,
  starts: readonly number[],
  stops: readonly number[],
  place: Call,
): OpSpecOf<"Slice"> {
  const domain = withoutReductions(tensor.domain.logical);
  if (starts.length !== domain.length || stops.length !== domain.length) {
    reject(place, {
      code: "bad-argument",
      message: "a slice needs a start and a stop for every axis",
      found: `${starts.length} starts and ${stops.length} stops for ${shapeText(tensor)}`,
      expected: `${domain.length} of each`,
      help: "give 0 and the extent for an axis that is kept whole",
    });
  }
  const ranges = domain.map(({ extent }, axis) => {
    const start = at(starts, axis);
    const stop = at(stops, axis);
    const limit = constantValue(extent) ?? Number.MAX_SAFE_INTEGER;
    if (Number.isSafeInteger(start) && Number.isSafeInteger(stop) && 0 <= start && start < stop && stop <= limit) {
      return { start, stop };
    }
    return reject(place, {
      code: "index-out-of-range",
      message: `a slice does not lie inside axis ${axis}`,
      found: `[${start}, ${stop}) of extent ${printScalar(extent)}`,
      expected: `whole numbers 0 <= start < stop <= ${printScalar(extent)}`,
      help: "choose a range of at least one index inside the axis",
    });
  });
  return { kind: "Slice", ranges };
}

/** A negative index counts from the end of the axis. */
export function selectSpec(tensor: Tensor, axis: number, index: number, place: Call): OpSpecOf<"Select"> {
  const domain = withoutReductions(tensor.domain.logical);
  const resolved = resolveAxis(axis, domain.length, place);
  const { extent } = at(domain, resolved);
  const limit = constantValue(extent) ?? Number.MAX_SAFE_INTEGER;
  if (!Number.isSafeInteger(index) || index >= limit || index < -limit) {
    reject(place, {
      code: "index-out-of-range",
      message: `index ${index} lies outside axis ${resolved}`,
      found: `index ${index} of extent ${printScalar(extent)}`,
      expected: `a whole number from -${printScalar(extent)} to ${printScalar(extent)} - 1`,
      help: "choose an index inside the axis",
    });
  }
  return { kind: "Select", axis: resolved, index: index < 0 ? foldAdd(extent, constant(index)) : constant(index) };
}
