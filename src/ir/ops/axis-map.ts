/**
 * Which axes of an op's operands and output index the same thing: nvFuser's producer-to-consumer map. Passes derive shardings,
 * resharding and Stream loops from it.
 *
 * A pair joins an axis of an operand (never a reduced one: the operand does not have it any more) with an axis of the output's
 * logical domain, as the op reads the operand: permuted, where it reads a permute in place. A contracted or reduced axis pairs
 * with the output's reduction axis. Axes that an op removes (select, squeeze), cuts (slice) or rearranges (reshape) have no pair.
 *
 * A reduction, matmul or linear over a sharded axis may stop at what each device has (nvFuser's rFactor): its output has one more
 * axis with an index per device, in front of the reduction axis, whose extent is then a device's share:
 *
 *   T2[iS{M}, ideviceIdx.x{D}, rS{K/D}] = reduction( T1[iS{M}, i{K} split in deviceIdx.x{D} and iS{K/D}] )
 */
import { at } from "../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../domain.ts";
import type { AxisPair } from "./axis-pairs.ts";
import type { Op } from "./op.ts";
import type { Axes, OperandAxis } from "./row.ts";
import { rowOf } from "./rows.ts";

export type { AxisPair };

/** The pairs of `op`, by operand and then in the order of the operand's axes. `tensors` is indexed by TensorId. */
export function axisMap(op: Op, tensors: readonly Tensor[]): readonly AxisPair[] {
  const row = rowOf(op);
  const operands = allOperandAxes(op, tensors);
  const { logical } = at(tensors, op.output).domain;
  const partial = row.partial(op, operands, logical);
  const output = partial.length === 0 ? logical : logical.filter((axis) => !partial.includes(axis));
  return row.pairs(op, operands, output);
}

/** The axes of the output that count the devices' partial results; none of most ops. */
export function partialAxes(op: Op, tensors: readonly Tensor[]): Axes {
  return rowOf(op).partial(op, allOperandAxes(op, tensors), at(tensors, op.output).domain.logical);
}

/** The axes of operands that a device needs whole: those that the op reduces, contracts or cuts. */
export function wholeAxes(op: Op, tensors: readonly Tensor[]): readonly OperandAxis[] {
  return rowOf(op).whole(op, allOperandAxes(op, tensors));
}

/** `orders[operand]` of a contraction that reads that operand permuted; else null. */
export function operandOrder(op: Op, operand: number): readonly number[] | null {
  return op.kind === "Matmul" || op.kind === "Linear" ? (op.orders?.[operand] ?? null) : null;
}

/** The axes of an operand in the order in which the op counts them, without reduced ones. `tensors` is indexed by TensorId. */
export function operandAxes(op: Op, operand: number, tensors: readonly Tensor[]): Axes {
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const order = operandOrder(op, operand);
  return order === null ? axes : order.map((axis) => at(axes, axis));
}

function allOperandAxes(op: Op, tensors: readonly Tensor[]): readonly Axes[] {
  return op.inputs.map((_, operand) => operandAxes(op, operand, tensors));
}
