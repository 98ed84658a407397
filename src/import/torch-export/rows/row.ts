/** A row says how Braid computes an ATen op. One row may stand for several overloads, whose names a space separates. */
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import type { Operands, Value } from "../operands.ts";

/** One result, or one per name of the node's results; null for one that Braid does not compute. */
export type RowResult = TensorView | Value | readonly (TensorView | null)[];

export type Row = (operands: Operands) => RowResult;

export type Rows = ReadonlyMap<string, Row>;

export function rowsOf(table: Readonly<Record<string, Row>>, namespace = "torch.ops.aten."): Rows {
  return new Map(
    Object.entries(table).flatMap(([names, row]) => names.split(" ").map((name) => [`${namespace}${name}`, row])),
  );
}
