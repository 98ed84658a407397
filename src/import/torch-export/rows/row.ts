/**
 * A row says how Braid computes an ATen op. One row may stand for several overloads, whose names a space separates, with
 * the names of their positional parameters after them where these are not `self`, and after a star those of keywords:
 * `sum.dim_IntList(self dim keepdim * dtype)`.
 */
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import type { NodeOperands, NodeValue } from "../operands.ts";

/** One result, or one per name of the node's results; null for one that Braid does not compute. */
export type RowResult = TensorView | NodeValue | readonly (TensorView | null)[];

export function isResults(result: RowResult): result is readonly (TensorView | null)[] {
  return Array.isArray(result);
}

export type AtenRow = (operands: NodeOperands) => RowResult;

export interface AtenOverload {
  readonly parameters: readonly string[];
  readonly keywords: readonly string[];
  readonly row: AtenRow;
}

export type AtenRows = ReadonlyMap<string, AtenOverload>;

/** The keywords of ops that make a tensor: dtypes come from the results, and Braid chooses the rest. */
const factory = ["dtype", "layout", "device", "pin_memory", "memory_format", "requires_grad"];

export function atenRows(table: Readonly<Record<string, AtenRow>>, namespace = "torch.ops.aten."): AtenRows {
  return new Map(
    Object.entries(table).flatMap(([overloads, row]) =>
      Array.from(overloads.matchAll(/([\w. ]+)(?:\(([^)]*)\))?/gu)).flatMap(([, names = "", listed = "self"]) => {
        const [parameters = [], named = []] = listed.split("*").map((part) => part.match(/\w+/gu) ?? []);
        const keywords = named.flatMap((word) => (word === "factory" ? factory : [word]));
        return (names.match(/\S+/gu) ?? []).map((name): [string, AtenOverload] => [
          `${namespace}${name}`,
          { parameters, keywords, row },
        ]);
      }),
    ),
  );
}
