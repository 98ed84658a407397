/**
 * An op on slices: its attributes without the looped axis.
 *
 *   T2[Stream i0, i2] = sum(T0[i0, i1, i2], axes {1})     ->     on slices along i0: axes {0}
 */
import { fail } from "../../../diagnostics/diagnostic.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../../../ir/domain.ts";
import { operandAxes } from "../../../ir/ops/axis-map.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { rowOf } from "../../../ir/ops/rows.ts";
import { constant } from "../../../ir/scalar/scalar.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { axisText, opPlace } from "../../op-text.ts";

/** `axes` are the sliced axes of the operands, from loopedOperandAxes. The caller replaces the operands' ids. */
export function withoutLoopedAxis(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): Op {
  const row = rowOf(op);
  invariant(row.standalone, "only standalone host ops are sliced", op);
  if (op.kind === "Matmul") requireSliceableMatmul(op, axes, looped, tensors);
  const cut = op.inputs.map((id, operand) => {
    const position = withoutReductions(at(tensors, id).domain.logical).findIndex(({ id }) => id === axes[operand]?.id);
    return position < 0 ? null : position;
  });
  return row.sliced(op, cut);
}

/** A slice takes all of a chunk. `axis` is the chunked axis of the operand, which `chunk` has at the same position. */
export function onChunk<O extends Op>(op: O, axis: IterDomain | null, operand: Tensor, chunk: Tensor): O {
  const position = withoutReductions(operand.domain.logical).findIndex(({ id }) => id === axis?.id);
  if (op.kind !== "Slice" || position < 0) return op;
  const { extent } = at(withoutReductions(chunk.domain.logical), position);
  return { ...op, ranges: op.ranges.with(position, { start: constant(0), stop: extent }) };
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
