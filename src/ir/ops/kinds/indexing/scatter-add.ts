/**
 * Adds each element of a source to the element of a tensor that an index names along one axis, in the order of the
 * source: torch.scatter_add. An index that is negative or too large adds nothing.
 */
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { type Call, rankOf, reject, resolveAxis } from "../../call.ts";
import { numberDType } from "../../dtype-rules.ts";
import { elementWork, type OpBase, type OpRow, type SpecOf } from "../../row.ts";
import { countOf, moves, shifted, zip } from "../families.ts";
import { requireAlike, requireIndex } from "./indices.ts";

export interface ScatterAddOp extends OpBase {
  readonly kind: "ScatterAdd";
  /** Of all inputs: the tensor that is added to, the indices, and the source. */
  readonly axis: number;
}

/** Throws `axis-out-of-range`, `shape-mismatch`, `dtype-mismatch` for indices that are not integers. */
export function scatterAddSpec(operands: readonly Tensor[], axis: number, place: Call): SpecOf<ScatterAddOp> {
  const [tensor, index, source] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const resolved = resolveAxis(axis, rankOf(tensor), place);
  requireIndex(index, place);
  requireAlike(tensor, index, resolved, place);
  requireAlike(index, source, null, place);
  return { kind: "ScatterAdd", axis: resolved };
}

export const scatterAddRow: OpRow<ScatterAddOp> = {
  ...moves,
  operands: [3, 3],
  dtype: (spec, operands, place) => {
    const dtype = numberDType(spec, [at(operands, 0), at(operands, 2)], place);
    if (dtype !== "half" && dtype !== "bfloat16") return dtype;
    return reject(place, {
      code: "dtype-mismatch",
      message: "ScatterAdd adds in its dtype, and 16 bits are too few",
      found: dtype,
      expected: "double, float, int or int64",
      help: 'convert with cast(tensor, "float"), and convert the sum back, as scatterAdd() does',
    });
  },
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: ({ axis }, operands, _, place) => scatterAddSpec(operands, axis, place),
  pairs: ({ axis }, operands, output) => {
    const kept = withoutReductions(output);
    const others = [1, 2].flatMap((operand) => zip(operand, at(operands, operand), kept).toSpliced(axis, 1));
    return [...zip(0, at(operands, 0), kept).toSpliced(axis, 1), ...others];
  },
  whole: ({ axis }, operands) => operands.map((axes, operand) => ({ operand, axis: at(axes, axis) })),
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  flops: (_, { operands }) => countOf(at(operands, 2)),
  work: (_, { operands, output }) => elementWork * (countOf(output) + 3 * countOf(at(operands, 2))),
};
