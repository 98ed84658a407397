/**
 * Reduces elements along axes with a function of functions/reduction.ts. The reduced axes stay in the output's logical
 * domain with iteration type reduction.
 */
import { at } from "../../../support/invariant.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../../domain.ts";
import { shifted, zip } from "./families.ts";
import { type Call, rankOf, reject, resolveAxes } from "../call.ts";
import { computedDType, numberDType } from "../dtype-rules.ts";
import { reductionFunctions, type ReductionOpType } from "../functions/reduction.ts";
import { type Axes, elementWork, type OpBase, type OpRow, type SpecOf } from "../row.ts";
import { elementCount } from "../../../numerics/tensor/storage.ts";

export interface ReductionOp extends OpBase {
  readonly kind: "Reduction";
  readonly op: ReductionOpType;
  readonly axes: readonly number[];
}

/** Throws `bad-argument`, `axis-out-of-range`, `axis-repeated`. */
export function reductionSpec(
  op: ReductionOpType,
  tensor: Tensor,
  axes: readonly number[],
  place: Call,
): SpecOf<ReductionOp> {
  if (axes.length === 0) {
    reject(place, "bad-argument", "a reduction needs at least one axis", {
      found: "no axes",
      expected: "the axes to reduce, for example [0]",
      help: "name the axes, or remove the reduction",
    });
  }
  return { kind: "Reduction", op, axes: resolveAxes(axes, rankOf(tensor), place) };
}

export const reductionRow: OpRow<ReductionOp> = {
  operands: [1, 1],
  standalone: true,
  isView: false,
  dtype: (spec, operands, place) =>
    (reductionFunctions[spec.op].operand === "number" ? numberDType : computedDType)(spec, operands, place),
  shape: ({ axes }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).map((axis, i) =>
      axes.includes(i) ? { extent: axis.extent, iterType: "reduction" } : axis,
    ),
  }),
  respec: ({ op, axes }, operands, _, place) => reductionSpec(op, at(operands, 0), axes, place),
  pairs: (_, operands, output) => zip(0, at(operands, 0), output),
  partial: partialAxes,
  whole: ({ axes }, operands) => axes.map((axis) => ({ operand: 0, axis: at(at(operands, 0), axis) })),
  misfit: () => null,
  sources: () => null,
  sliced: (op, [cut]) => ({ ...op, axes: op.axes.map((axis) => shifted(axis, cut)) }),
  flops: (_, { operands, output }) => elementCount(at(operands, 0)) - elementCount(output),
  work: (_, { operands }) => elementWork * elementCount(at(operands, 0)),
};

/** Axes of partial results precede the reduced axis. */
function partialAxes({ axes }: ReductionOp, operands: readonly Axes[], output: Axes): Axes {
  if (output.length === at(operands, 0).length) return [];
  const partial: IterDomain[] = [];
  for (const [position, axis] of output.entries()) {
    const ordinary = position - partial.length;
    if (axis.iterType !== "reduction" && axes.includes(ordinary)) partial.push(axis);
  }
  return partial;
}
