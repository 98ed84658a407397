/** A row says how Braid computes an ATen op. One row may stand for several overloads, whose names a space separates. */
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import type { NodeOperands, NodeValue } from "../operands.ts";

/** One result, or one per name of the node's results; null for one that Braid does not compute. */
export type RowResult = TensorView | NodeValue | readonly (TensorView | null)[];

export type AtenRow = (operands: NodeOperands) => RowResult;

export type AtenRows = ReadonlyMap<string, AtenRow>;

export function atenRows(table: Readonly<Record<string, AtenRow>>, namespace = "torch.ops.aten."): AtenRows {
  return new Map(
    Object.entries(table).flatMap(([names, row]) => names.split(" ").map((name) => [`${namespace}${name}`, row])),
  );
}
