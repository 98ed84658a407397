/**
 * Which axes of an op's operands and output index the same thing: nvFuser's producer-to-consumer map, one rule
 * per kind of op. Passes derive shardings, resharding and Stream loops from it.
 *
 * A pair joins an axis of an operand (never a reduced one: the operand does not have it any more) with an axis of
 * the output's logical domain, as the op reads the operand: permuted, where it folds a permute. A contracted or reduced axis pairs with
 * the output's reduction axis. What an op
 * removes (select, squeeze), cuts (slice) or rearranges (reshape) has no pair.
 *
 * A reduction, matmul or linear over a sharded axis may stop at what each device has (nvFuser's rFactor): its output has one more
 * axis with an index per device, in front of the reduction axis, whose extent is then a device's share:
 *
 *   T2[iS{M}, ideviceIdx.x{D}, rS{K/D}] = reduction( T1[iS{M}, i{K} split in deviceIdx.x{D} and iS{K/D}] )
 */
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { isUnitAxis, type IterDomain, type Tensor, withoutReductions } from "../domain.ts";
import type { LinearOp, MatmulOp, Op, ReductionOp, SliceOp } from "./op.ts";
import { operandAxes } from "./operand-axes.ts";
import { isConstant, sameScalar } from "../scalar/fold.ts";

export interface AxisPair {
  /** Index in `op.inputs`. */
  readonly operand: number;
  /** An axis of the operand's logical domain. */
  readonly producer: IterDomain;
  /** An axis of the output's logical domain. */
  readonly consumer: IterDomain;
  /** The operand has one element along the axis where the output may have more: every index reads the same element. */
  readonly broadcast: boolean;
}

type Axes = readonly IterDomain[];

/** The pairs of `op`, by operand and then in the order of the operand's axes. `tensors` is indexed by TensorId. */
export function axisMap(op: Op, tensors: readonly Tensor[]): readonly AxisPair[] {
  const operand = (i: number): Axes => operandAxes(op, i, tensors);
  const output = at(tensors, op.output).domain.logical;
  switch (op.kind) {
    case "Set":
    case "Unary":
    case "Cast":
    case "Binary":
      return op.inputs.flatMap((_, i) => zip(i, operand(i), withoutReductions(output)));
    case "Reduction":
      return zip(0, operand(0), splitPartial(op, operand, output).ordinary);
    case "Broadcast":
      return zip(
        0,
        operand(0),
        withoutReductions(output).filter((_, i) => op.flags[i] !== true),
      );
    case "Squeeze":
      return zip(
        0,
        operand(0).filter((_, i) => !op.axes.includes(i)),
        withoutReductions(output),
      );
    case "Permute":
      return operand(0).map((axis, i) => pair(0, axis, at(withoutReductions(output), op.order.indexOf(i))));
    case "Reshape":
      return reshapePairs(operand(0), withoutReductions(output));
    case "Slice":
      return slicePairs(op, operand(0), withoutReductions(output));
    case "Select":
      return zip(
        0,
        operand(0).filter((_, i) => i !== op.axis),
        withoutReductions(output),
      );
    case "Matmul":
      return matmulPairs(operand(0), operand(1), splitPartial(op, operand, output).ordinary);
    case "Linear":
      return linearPairs(
        operand(0),
        operand(1),
        op.inputs.length > 2 ? operand(2) : [],
        splitPartial(op, operand, output).ordinary,
      );
    default:
      return unreachable(op);
  }
}

/** The axes of the output that count the devices' partial results; none of most ops. */
export function partialAxes(op: Op, tensors: readonly Tensor[]): Axes {
  const operand = (i: number): Axes => operandAxes(op, i, tensors);
  const output = at(tensors, op.output).domain.logical;
  switch (op.kind) {
    case "Reduction":
    case "Matmul":
    case "Linear":
      return splitPartial(op, operand, output).partial;
    case "Set":
    case "Unary":
    case "Cast":
    case "Binary":
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Reshape":
    case "Slice":
    case "Select":
      return [];
    default:
      return unreachable(op);
  }
}

/** The output's axes in two: what the op always puts out, and the axes of partial results, which stand before a reduction axis. */
function splitPartial(
  op: ReductionOp | MatmulOp | LinearOp,
  operand: (i: number) => Axes,
  output: Axes,
): { readonly ordinary: Axes; readonly partial: Axes } {
  const first = operand(0);
  if (op.kind === "Reduction") {
    if (output.length === first.length) return { ordinary: output, partial: [] };
    const ordinary: IterDomain[] = [];
    const partial: IterDomain[] = [];
    for (const axis of output) {
      const isReduced = axis.iterType === "reduction";
      const isPartial = !isReduced && op.axes.includes(ordinary.length);
      (isPartial ? partial : ordinary).push(axis);
    }
    return { ordinary, partial };
  }
  const second = operand(1);
  const rows = Math.max(first.length - 1, 0);
  const count =
    op.kind === "Linear"
      ? rows + second.length - 1
      : Math.max(first.length - 2, second.length - 2, 0) + Math.min(rows, 1) + (second.length > 1 ? 1 : 0);
  const kept = withoutReductions(output);
  if (kept.length === count) return { ordinary: output, partial: [] };
  const partial = kept.slice(count);
  return { ordinary: output.filter((axis) => !partial.includes(axis)), partial };
}

function pair(operand: number, producer: IterDomain, consumer: IterDomain): AxisPair {
  const widened = producer.iterType === "broadcast" && consumer.iterType !== "broadcast";
  return { operand, producer, consumer, broadcast: widened || (isUnitAxis(producer) && !isUnitAxis(consumer)) };
}

function zip(operand: number, producers: Axes, consumers: Axes): AxisPair[] {
  return producers.map((producer, i) => pair(operand, producer, at(consumers, i)));
}

/** Pairs as far as they go, the last axes first to be joined: how batch axes line up. */
function zipRight(operand: number, producers: Axes, consumers: Axes): AxisPair[] {
  return zip(operand, producers, consumers.slice(consumers.length - producers.length));
}

/** Leading and trailing axes of equal extent keep their row-major index; what lies between is rearranged. */
function reshapePairs(input: Axes, output: Axes): AxisPair[] {
  const shorter = Math.min(input.length, output.length);
  const same = (a: IterDomain | undefined, b: IterDomain | undefined): boolean =>
    a !== undefined && b !== undefined && sameScalar(a.extent, b.extent);
  let leading = 0;
  while (leading < shorter && same(input[leading], output[leading])) leading++;
  let trailing = 0;
  while (trailing < shorter - leading && same(input.at(-1 - trailing), output.at(-1 - trailing))) trailing++;
  return [
    ...zip(0, input.slice(0, leading), output),
    ...zip(0, input.slice(input.length - trailing), output.slice(output.length - trailing)),
  ];
}

/** A range that is known to be the whole axis keeps it. */
function slicePairs(op: SliceOp, input: Axes, output: Axes): AxisPair[] {
  return zip(0, input, output).filter(({ producer }, i) => {
    const { start, stop } = at(op.ranges, i);
    return start === 0 && isConstant(producer.extent, stop);
  });
}

/**
 * a [.., M, K] or [K], b [.., K, N] or [K]; output [.., M, N, rK] without M or N where the operand has none. A batch axis that is
 * contracted, too, is a reduction axis of the output in its place.
 */
function matmulPairs(a: Axes, b: Axes, output: Axes): AxisPair[] {
  const kept = output.at(-1)?.iterType === "reduction" ? output.slice(0, -1) : output;
  const hasM = a.length > 1;
  const hasN = b.length > 1;
  const rows = hasN ? kept.slice(0, -1) : kept;
  const batch = hasM ? rows.slice(0, -1) : rows;
  return [
    ...zipRight(0, a.slice(0, -1), hasM ? rows : []),
    ...contraction(0, a.at(-1), output),
    ...zipRight(1, hasN ? b.slice(0, -2) : [], batch),
    ...contraction(1, hasN ? b.at(-2) : b[0], output),
    ...zipRight(1, hasN ? b.slice(-1) : [], kept),
  ];
}

/** x [.., K], weight [N, K] or [K], bias [N] or []; output [.., N, rK], without N where the weight has none. */
function linearPairs(x: Axes, weight: Axes, bias: Axes, output: Axes): AxisPair[] {
  const kept = withoutReductions(output);
  return [
    ...zip(0, x.slice(0, -1), kept),
    ...contraction(0, x.at(-1), output),
    ...zipRight(1, weight.slice(0, -1), kept),
    ...contraction(1, weight.at(-1), output),
    ...zipRight(2, bias, kept),
  ];
}

function contraction(operand: number, axis: IterDomain | undefined, output: Axes): AxisPair[] {
  const reduced = output.at(-1);
  return axis === undefined || reduced?.iterType !== "reduction" ? [] : [pair(operand, axis, reduced)];
}
