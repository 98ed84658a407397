/**
 * Replaces an axis by the axes of an index tensor: torch.index_select, and an embedding if the axis is the first one.
 * An index that is negative or too large gives 0.
 */
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { type Call, rankOf, resolveAxis } from "../../call.ts";
import { elementWork, type OpBase, type OpRow, type SpecOf } from "../../row.ts";
import { countOf, moves, shifted, zip } from "../families.ts";
import { indexedDType } from "./indices.ts";

export interface IndexSelectOp extends OpBase {
  readonly kind: "IndexSelect";
  /** Of the first input, the table. The second input has the indices. */
  readonly axis: number;
}

/** Throws `axis-out-of-range`. */
export function indexSelectSpec(table: Tensor, axis: number, place: Call): SpecOf<IndexSelectOp> {
  return { kind: "IndexSelect", axis: resolveAxis(axis, rankOf(table), place) };
}

export const indexSelectRow: OpRow<IndexSelectOp> = {
  ...moves,
  operands: [2, 2],
  dtype: indexedDType,
  shape: ({ axis }, operands) => {
    const [table, index] = [0, 1].map((i) => withoutReductions(at(operands, i).domain.logical));
    return { axes: (table ?? []).toSpliced(axis, 1, ...(index ?? [])) };
  },
  respec: ({ axis }, operands, _, place) => indexSelectSpec(at(operands, 0), axis, place),
  pairs: ({ axis }, operands, output) => {
    const [table, index] = [at(operands, 0), at(operands, 1)];
    const kept = withoutReductions(output);
    return [
      ...zip(0, table.slice(0, axis), kept),
      ...zip(0, table.slice(axis + 1), kept.slice(axis + index.length)),
      ...zip(1, index, kept.slice(axis)),
    ];
  },
  whole: ({ axis }, operands) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  work: (_, { output }) => 2 * elementWork * countOf(output),
};
