/**
 * Which axes of an op's operands and output have the same index: nvFuser's producer-to-consumer map. Passes derive
 * shardings, resharding and Stream loops from it.
 *
 * A pair is an axis of an operand and an axis of the output's logical domain. Operand axes are counted as the op reads
 * them: permuted if it reads a permute in place, and without reduced axes, which no longer exist. A contracted or
 * reduced axis pairs with the output's reduction axis. Axes that an op removes (select, squeeze), cuts (slice) or
 * rearranges (reshape) have no pair.
 *
 * A reduction, matmul or linear over a sharded axis may stop at each device's partial result (nvFuser's rFactor). Its
 * output then has one more axis with an index per device, before the reduction axis, whose extent is one device's
 * share:
 *
 *   T2[iS{M}, ideviceIdx.x{D}, rS{K/D}] = reduction( T1[iS{M}, i{K} split in deviceIdx.x{D} and iS{K/D}] )
 */
import { at } from "../../support/invariant.ts";
import { cutOf, dividesEvenly, inParts, rescaled } from "../parts.ts";
import { sameScalar } from "../scalar/fold.ts";
import type { Scalar } from "../scalar/scalar.ts";
import { type IterDomain, type Tensor, type TensorDomain, withoutReductions } from "../domain.ts";
import { isContraction, type Op, outputsOf } from "./op.ts";
import type { Axes, AxisPair, OperandAxis } from "./row.ts";
import { rowOf } from "./rows.ts";

export type { AxisPair };

/**
 * The axis pairs of `op`, by operand and then by operand axis. `tensors` is indexed by TensorId. The outermost axes of
 * a reshape are a pair if what is split off either of them divides both evenly, and axes of blocks if it divides their
 * number. `which` numbers the output, of an op that has several.
 */
export function axisMap(op: Op, tensors: readonly Tensor[], which = 0): readonly AxisPair[] {
  const pairs = possiblePairs(op, tensors, which);
  if (!pairs.some(({ outermost, blocks }) => outermost || blocks !== undefined)) return pairs;
  const { domain } = at(tensors, op.output);
  return pairs.filter(({ outermost, blocks, operand, producer, consumer }) => {
    const own = at(tensors, at(op.inputs, operand)).domain;
    if (blocks !== undefined) return keepsBlocks(own, producer, blocks) && keepsBlocks(domain, consumer, blocks);
    if (!outermost) return true;
    const sides = [splitFit(own, producer, consumer), splitFit(domain, consumer, producer)];
    return sides.includes("divides") && !sides.includes("differs");
  });
}

/** The axis pairs of `op` with the outermost axes of a reshape, whatever is split off them. */
export function possiblePairs(op: Op, tensors: readonly Tensor[], which = 0): readonly AxisPair[] {
  const row = rowOf(op);
  const operands = allOperandAxes(op, tensors);
  const { logical } = at(tensors, at(outputsOf(op), which)).domain;
  const partial = row.partial(op, operands, logical);
  const output = partial.length === 0 ? logical : logical.filter((axis) => !partial.includes(axis));
  return row.pairs(op, operands, output, which);
}

/** An axis of an op's first output and the axis of another one that has the same index, because an operand has both. */
export interface SiblingAxes {
  readonly first: IterDomain;
  readonly further: IterDomain;
}

/** The axes that output `which` has in common with the first output. */
export function siblingAxes(op: Op, tensors: readonly Tensor[], which: number): readonly SiblingAxes[] {
  const own = possiblePairs(op, tensors).filter(({ broadcast }) => !broadcast);
  const seen = new Set<IterDomain>();
  return possiblePairs(op, tensors, which).flatMap(({ producer, consumer, broadcast }): readonly SiblingAxes[] => {
    const first = own.find((pair) => pair.producer.id === producer.id)?.consumer;
    if (broadcast || first === undefined || seen.has(consumer)) return [];
    seen.add(consumer);
    return [{ first, further: consumer }];
  });
}

/** The axes of the output that number the devices' partial results. Most ops have none. */
export function partialAxes(op: Op, tensors: readonly Tensor[]): Axes {
  return rowOf(op).partial(op, allOperandAxes(op, tensors), at(tensors, op.output).domain.logical);
}

/** The operand axes that the op reduces, contracts or cuts. A device needs all of such an axis. */
export function wholeAxes(op: Op, tensors: readonly Tensor[]): readonly OperandAxis[] {
  return rowOf(op).whole(op, allOperandAxes(op, tensors));
}

/** `orders[operand]` of a contraction that reads that operand permuted; otherwise null. */
export function operandOrder(op: Op, operand: number): readonly number[] | null {
  return isContraction(op) ? (op.orders?.[operand] ?? null) : null;
}

/**
 * The axes of an operand in the order in which the op counts them, without reduced axes. `tensors` is indexed by
 * TensorId.
 */
export function operandAxes(op: Op, operand: number, tensors: readonly Tensor[]): Axes {
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const order = operandOrder(op, operand);
  return order === null ? axes : order.map((axis) => at(axes, axis));
}

function allOperandAxes(op: Op, tensors: readonly Tensor[]): readonly Axes[] {
  return op.inputs.map((_, operand) => operandAxes(op, operand, tensors));
}

/** Whether the axis is split, and its parts divide both axes. A type on a whole axis has no split to hand on. */
export function splitsDivide(domain: TensorDomain, axis: IterDomain, other: IterDomain): boolean {
  return splitFit(domain, axis, other) === "divides";
}

function keepsBlocks(domain: TensorDomain, axis: IterDomain, blocks: Scalar): boolean {
  const cut = cutOf(domain, axis);
  if (cut.parts.length === 1 && (at(cut.parts, 0).type === "Serial" || sameScalar(cut.extent, blocks))) return true;
  const own = inParts(cut);
  return dividesEvenly(own) && dividesEvenly(rescaled(own, blocks));
}

/** How what is split off the axis fits it and the other axis of a pair. */
function splitFit(domain: TensorDomain, axis: IterDomain, other: IterDomain): "unsplit" | "divides" | "differs" {
  const own = cutOf(domain, axis);
  if (own.parts.length === 1) return "unsplit";
  return dividesEvenly(own) && dividesEvenly(rescaled(own, other.extent)) ? "divides" : "differs";
}
