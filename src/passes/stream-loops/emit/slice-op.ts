/**
 * An op on slices: its attributes without the looped axis.
 *
 *   T2[Stream i0, i2] = sum(T0[i0, i1, i2], axes {1})     ->     on slices along i0: axes {0}
 */
import { fail } from "../../../diagnostics/diagnostic.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../../../ir/domain.ts";
import { operandAxes } from "../../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, Op } from "../../../ir/ops/op.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { axisText, opPlace } from "../../op-text.ts";

/**
 * `axes` are the sliced axes of the operands, as loopedOperandAxes gives them. The caller replaces the operands' ids.
 */
export function withoutLoopedAxis(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): Op {
  const first = at(tensors, at(op.inputs, 0));
  const position = withoutReductions(first.domain.logical).findIndex((axis) => axis.id === axes[0]?.id);
  const shift = (axis: number): number => (position >= 0 && axis > position ? axis - 1 : axis);
  switch (op.kind) {
    case "Set":
    case "Binary":
      return op;
    case "Linear":
    case "Matmul":
      return contractionWithoutAxis(op, axes, looped, tensors);
    case "Reduction":
      return { ...op, axes: op.axes.map(shift) };
    case "Slice":
      return { ...op, ranges: op.ranges.filter((_, axis) => axis !== position) };
    case "Select":
      return { ...op, axis: shift(op.axis) };
    case "Unary":
    case "Cast":
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Reshape":
      invariant(false, "only standalone host ops are sliced", op);
  }
}

/** `withoutLoopedAxis` of a contraction. */
export function contractionWithoutAxis<T extends MatmulOp | LinearOp>(
  op: T,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): T {
  if (op.kind === "Matmul") requireSliceableMatmul(op, axes, looped, tensors);
  return withSlicedOrders(op, axes, tensors);
}

/** Without its M or N axis, a batched operand would be read as a matrix whose rows are the batch. */
function requireSliceableMatmul(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): void {
  const [a, b] = [operandAxes(op, 0, tensors), operandAxes(op, 1, tensors)];
  const slicesRows = a.length >= 2 && at(a, a.length - 2).id === axes[0]?.id;
  const slicesColumns = b.length >= 2 && at(b, b.length - 1).id === axes[1]?.id;
  if (!(slicesRows && a.length > 2 && b.length > 2) && !(slicesColumns && b.length > 2)) return;
  fail({
    code: "stream-on-matmul-axis",
    message: `Stream is on the ${slicesRows ? "M" : "N"} axis of a matmul with batched operands`,
    place: opPlace(op),
    found: axisText(at(tensors, op.output), looped),
    expected: "Stream on a batch axis, or operands without batch axes",
    help: "parallelize a batch axis with Stream instead",
  });
}

/** Takes the sliced axes out of the orders in which the operands are read. */
function withSlicedOrders<T extends MatmulOp | LinearOp>(
  op: T,
  axes: readonly (IterDomain | null)[],
  tensors: readonly Tensor[],
): T {
  if (op.orders === undefined) return op;
  const orders = op.orders.map((order, operand) => {
    const stored = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
    const position = stored.findIndex((axis) => axis.id === axes[operand]?.id);
    if (order === null || position < 0) return order;
    return order.flatMap((axis) => (axis === position ? [] : [axis > position ? axis - 1 : axis]));
  });
  return { ...op, orders };
}
