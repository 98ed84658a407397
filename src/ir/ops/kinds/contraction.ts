/** What matmul and linear have in common: the contracted axis K is the trailing reduction axis of the output's logical domain. */
import { at } from "../../../support/invariant.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../../domain.ts";
import { extentsDiffer } from "../../scalar/fold.ts";
import { type AxisPair, pair } from "../axis-pairs.ts";
import { type Call, reject, shapeText } from "../call.ts";
import { numberDType } from "../dtype-rules.ts";
import type { Axes, OpBase, OpRow, Shapes } from "../row.ts";
import { countOf } from "./families.ts";

/** How a contraction reads and writes. Those of a user's Fusion say neither: passes and hand-built host programs do. */
export interface ContractionBase extends OpBase {
  /**
   * Of an op that contracts one chunk after the other: whether the result is added to what the output holds (beta = 1 of a
   * BLAS), and the sum rounded once, or is the first. Then the output's reduction axis prints all chunks.
   */
  readonly accumulate?: boolean;
  /** Operand i as a permute of its tensor, read in place: its axis j is axis `orders[i][j]` of the tensor. null: as it is. */
  readonly orders?: readonly (readonly number[] | null)[];
}

export const contraction = {
  standalone: true,
  isView: false,
  dtype: numberDType,
  misfit: () => null,
  // A bias, and what the output held, are added once.
  flops: ({ accumulate }: Pick<ContractionBase, "accumulate">, { operands, output }: Shapes) =>
    countOf(output) * (2 * contractedSize(operands) + operands.length - 2 + (accumulate === true ? 1 : 0)),
  work: (_: unknown, { operands, output }: Shapes) => countOf(output) * contractedSize(operands),
} as const satisfies Partial<OpRow<ContractionBase>>;

/** Both [.., M, K] and [K] end in K. */
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

/** K is not broadcast: an extent of 1 joins only another 1. Throws `shape-mismatch`. */
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

/** The contracted axis of an operand with the output's. */
export function contractedPair(operand: number, axis: IterDomain | undefined, output: Axes): readonly AxisPair[] {
  const reduced = output.at(-1);
  return axis === undefined || reduced?.iterType !== "reduction" ? [] : [pair(operand, axis, reduced)];
}

/** The axes of partial results stand after the `count` axes that the op always puts out. */
export function partialAxes(output: Axes, count: number): Axes {
  return withoutReductions(output).slice(count);
}
