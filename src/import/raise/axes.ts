/**
 * Which axes of the attention probabilities P the axes of other tensors are, through ops that only move elements. An axis
 * is a list of numbers, outermost first: axis i of P has the number i, and further axes get numbers of their own. An axis
 * of one element is the empty list.
 *
 *     P [b, h, L, S]: [[0], [1], [2], [3]];  reshaped to [b h, L, S]: [[0, 1], [2], [3]]
 */
import { reshape, squeeze } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { knownExtent } from "../manual/parts.ts";
import { broadcastTo, permutedTo } from "../views.ts";

export type AxisNumbers = readonly (readonly number[])[];

/** The extents of numbered axes. */
export type Extents = Map<number, number>;

/** NaN for a symbolic extent. */
export function sizesOfTensor(tensor: Tensor): readonly number[] {
  return withoutReductions(tensor.domain.logical).map(({ extent }) => knownExtent(extent));
}

/** The axes in lists whose products are the extents of `shape`; null if one is cut through. */
function regrouped(axes: AxisNumbers, shape: readonly number[], extents: Extents): AxisNumbers | null {
  const rest = axes.flat();
  const grouped = shape.map((extent) => {
    const own: number[] = [];
    let size = 1;
    while (size < extent && rest.length > 0) {
      const next = rest.shift() ?? 0;
      own.push(next);
      size *= extents.get(next) ?? NaN;
    }
    return size === extent ? own : null;
  });
  const known = grouped.flatMap((own) => (own === null ? [] : [own]));
  return known.length === shape.length && rest.length === 0 ? known : null;
}

/** The axes of the operand of an op that only moves elements, or stretches them; null for other ops. */
export function axesBefore(op: Op, axes: AxisNumbers, operand: Tensor, extents: Extents): AxisNumbers | null {
  const shape = sizesOfTensor(operand);
  switch (op.kind) {
    case "Set":
    case "Cast":
      return axes;
    case "Permute":
      return shape.map((_, axis) => at(axes, op.order.indexOf(axis)));
    case "Broadcast":
      return axes.filter((_, axis) => op.flags[axis] !== true);
    case "Squeeze":
      return op.axes.toSorted((a, b) => a - b).reduce<AxisNumbers>((all, axis) => all.toSpliced(axis, 0, []), axes);
    case "Expand":
      return axes.map((own, axis) => (shape[axis] === 1 ? [] : own));
    case "Reshape":
      return regrouped(axes, shape, extents);
    default:
      return null;
  }
}

/** The axes of the result of an op that only moves the elements of its operand; null for other ops. */
export function axesAfter(op: Op, axes: AxisNumbers, result: Tensor, extents: Extents): AxisNumbers | null {
  switch (op.kind) {
    case "Set":
    case "Cast":
      return axes;
    case "Permute":
      return op.order.map((axis) => at(axes, axis));
    case "Squeeze":
      return axes.filter((_, axis) => !op.axes.includes(axis));
    case "Broadcast": {
      const rest = [...axes];
      return op.flags.map((isNew) => (isNew ? [] : (rest.shift() ?? [])));
    }
    case "Reshape":
      return regrouped(axes, sizesOfTensor(result), extents);
    default:
      return null;
  }
}

/** The tensor with one axis for each number of `order`, of extent 1 where it lacks that axis. */
export function arranged(
  tensor: TensorView,
  axes: AxisNumbers,
  order: readonly number[],
  extents: Extents,
): TensorView {
  const units = axes.flatMap((own, axis) => (own.length === 0 ? [axis] : []));
  const dense = units.length === 0 ? tensor : squeeze(tensor, units);
  const flat = axes.flat();
  const apart = axes.some((own) => own.length > 1)
    ? reshape(
        dense,
        flat.map((axis) => extents.get(axis) ?? 1),
      )
    : dense;
  const present = order.filter((axis) => flat.includes(axis));
  const ordered = permutedTo(
    apart,
    present.map((axis) => flat.indexOf(axis)),
  );
  return broadcastTo(ordered, order.length, (axis) => !flat.includes(at(order, axis)));
}

/** The tensor, with one axis for each number of `order`, as the axes say. */
export function restored(
  tensor: TensorView,
  order: readonly number[],
  axes: AxisNumbers,
  shape: readonly number[],
): TensorView {
  const flat = axes.flat();
  const units = order.flatMap((axis, i) => (flat.includes(axis) ? [] : [i]));
  const dense = units.length === 0 ? tensor : squeeze(tensor, units);
  const rest = order.filter((axis) => flat.includes(axis));
  const ordered = permutedTo(
    dense,
    flat.map((axis) => rest.indexOf(axis)),
  );
  return axes.length === flat.length ? ordered : reshape(ordered, shape);
}
