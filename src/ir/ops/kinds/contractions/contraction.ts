/**
 * The common base of matmul and linear. The contracted axis K is the trailing reduction axis of the output's logical
 * domain.
 */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { countOf, pair, shifted } from "../families.ts";
import { type Call, reject, shapeText } from "../../call.ts";
import { numberDType } from "../../dtype-rules.ts";
import type { Axes, AxisPair, OpBase, OpRow, Shapes } from "../../row.ts";

/** How a contraction reads and writes memory. Only passes and hand-built host programs set these fields. */
export interface ContractionBase extends OpBase {
  /**
   * Set on an op that contracts one chunk of K. true: add the result to the output (beta = 1 of a BLAS), with one
   * rounding of the sum. false: write the first chunk. The output's reduction axis then prints the extent of all
   * chunks.
   */
  readonly accumulate?: boolean;
  /**
   * If not null, operand i is a permute of its tensor, read in place: its axis j is axis `orders[i][j]` of the tensor.
   */
  readonly orders?: readonly (readonly number[] | null)[];
}

export const contraction = {
  standalone: true,
  isView: false,
  dtype: numberDType,
  misfit: () => null,
  sources: () => null,
  // Takes the axes out of the orders in which the operands are read.
  sliced: <T extends ContractionBase>(op: T, cut: readonly (number | null)[]): T => {
    if (op.orders === undefined) return op;
    const orders = op.orders.map((order, operand) =>
      order === null ? null : order.flatMap((axis) => (axis === cut[operand] ? [] : [shifted(axis, cut[operand])])),
    );
    return { ...op, orders };
  },
  // A bias and a previous output each add one operation per element.
  flops: ({ accumulate }: Pick<ContractionBase, "accumulate">, { operands, output }: Shapes) =>
    countOf(output) * (2 * contractedSize(operands) + operands.length - 2 + (accumulate === true ? 1 : 0)),
  work: (_: unknown, { operands, output }: Shapes) => countOf(output) * contractedSize(operands),
} as const satisfies Partial<OpRow<ContractionBase>>;

/** Valid for [.., M, K] and for [K]. */
function contractedSize(operands: Shapes["operands"]): number {
  return at(operands, 0).at(-1) ?? 1;
}

/** The axes of an operand, at least one. Throws `shape-mismatch`. */
export function operandAxes(tensor: Tensor, place: Call): Axes {
  const axes = withoutReductions(tensor.domain.logical);
  if (axes.length > 0) return axes;
  return reject(place, {
    code: "shape-mismatch",
    message: "an operand of a contraction is a scalar",
    found: shapeText(tensor),
    expected: "at least one axis",
    help: "give the operand at least one axis; mul() multiplies tensors of equal shape",
  });
}

/** K does not broadcast: an extent of 1 matches only 1. Throws `shape-mismatch`. */
export function contract(a: Tensor, left: IterDomain, b: Tensor, right: IterDomain, place: Call): AxisShape {
  if (extentsDiffer(left.extent, right.extent)) {
    reject(place, {
      code: "shape-mismatch",
      message: "the contracted axes have different extents",
      found: `${shapeText(a)} and ${shapeText(b)}`,
      expected: "the last axis of the first operand and the contracted axis of the second with equal extents",
      help: "matmul contracts [.., M, K] with [.., K, N]; linear contracts [.., K] with [N, K]",
    });
  }
  return { extent: left.extent, iterType: "reduction" };
}

/** Pairs the contracted axis of an operand with the output's. It does not broadcast, also where one operand's is 1. */
export function contractedPair(operand: number, axis: IterDomain | undefined, output: Axes): readonly AxisPair[] {
  const reduced = output.at(-1);
  return axis === undefined || reduced?.iterType !== "reduction"
    ? []
    : [{ ...pair(operand, axis, reduced), broadcast: false }];
}

/** The axes of partial results, which follow the op's first `count` output axes. */
export function partialAxes(output: Axes, count: number): Axes {
  return withoutReductions(output).slice(count);
}
