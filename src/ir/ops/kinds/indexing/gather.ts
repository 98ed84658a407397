/**
 * Reads one index of an axis per element of the output: numpy's take_along_axis, torch.gather with equal extents of the
 * other axes. An index that is negative or too large gives 0.
 */
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { type Call, rankOf, resolveAxis } from "../../call.ts";
import { elementWork, type OpBase, type OpRow, type SpecOf } from "../../row.ts";
import { countOf, moves, shifted, zip } from "../families.ts";
import { indexedDType, requireAlike } from "./indices.ts";

export interface GatherOp extends OpBase {
  readonly kind: "Gather";
  /** Of both inputs: the tensor that is read, and the indices. */
  readonly axis: number;
}

/** Throws `axis-out-of-range`. */
export function gatherSpec(tensor: Tensor, axis: number, place: Call): SpecOf<GatherOp> {
  return { kind: "Gather", axis: resolveAxis(axis, rankOf(tensor), place) };
}

export const gatherRow: OpRow<GatherOp> = {
  ...moves,
  operands: [2, 2],
  dtype: indexedDType,
  shape: ({ axis }, operands, place) => {
    requireAlike(at(operands, 0), at(operands, 1), axis, place);
    return { axes: withoutReductions(at(operands, 1).domain.logical) };
  },
  respec: ({ axis }, operands, _, place) => gatherSpec(at(operands, 0), axis, place),
  pairs: ({ axis }, operands, output) => {
    const kept = withoutReductions(output);
    return [...zip(0, at(operands, 0), kept).toSpliced(axis, 1), ...zip(1, at(operands, 1), kept)];
  },
  whole: ({ axis }, operands) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  work: (_, { output }) => 2 * elementWork * countOf(output),
};
