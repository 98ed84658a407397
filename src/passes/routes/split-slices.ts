/**
 * Slices of a sharded axis, so that nothing is gathered.
 *
 *   T1[M, N/2] = slice(T0[M, N/DIDx], every 2nd of N)   ->   T2[M, (N/2)/DIDx, 2] = view(T0); T1 = select(T2, {2}, 0)
 *   T1[M, 2] = slice(T0[M, N/DIDx], {0, 2} of N)        ->   T2[2] = iota(2); T1 = index_select(T0, {1}, T2)
 *
 * The first is local. Of the second, each device reads what it has, and the results are summed (split-indices.ts), if
 * all slices of the tensor have fewer bytes together than the tensor.
 */
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { AxisPair } from "../../ir/ops/axis-map.ts";
import type { SliceOp } from "../../ir/ops/kinds/views/slice.ts";
import type { Op } from "../../ir/ops/op.ts";
import { constantValue, foldCeilDiv, foldSub } from "../../ir/scalar/fold.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";

/** Every `step`-th index of an axis from `start` on, of all whole steps. */
export interface WholeSteps {
  readonly axis: number;
  readonly start: number;
  readonly step: number;
}

/** The axes along which a slice takes one index of each step. */
export function wholeSteps({ ranges }: SliceOp, operand: Tensor): readonly WholeSteps[] {
  return withoutReductions(operand.domain.logical).flatMap(({ extent }, axis) => {
    const { start, stop, step = 1 } = at(ranges, axis);
    const [from, size] = [constantValue(start), constantValue(extent)];
    const count = constantValue(foldCeilDiv(foldSub(stop, start), constant(step)));
    const isWhole = step > 1 && from !== null && from < step && count !== null && count * step === size;
    return isWhole ? [{ axis, start: from, step }] : [];
  });
}

/** The axes of an operand of which the output has as many equal parts, once the slice is split. */
export function keptBySlice(op: Op, tensors: readonly Tensor[]): readonly AxisPair[] {
  if (op.kind !== "Slice" || streamAxis(at(tensors, op.output)) !== null) return [];
  const [operand, output] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  return wholeSteps(op, operand).map(({ axis }) => ({
    operand: 0,
    producer: at(withoutReductions(operand.domain.logical), axis),
    consumer: at(withoutReductions(output.domain.logical), axis),
    broadcast: false,
    outermost: true,
  }));
}
