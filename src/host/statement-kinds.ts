/** Which statements are computations (ops of the Fusion IR), as one table over all kinds. */
import type { Op, OpKind } from "../ir/ops/op.ts";
import type { Statement, StatementKind } from "./nodes.ts";

const isOpKind: { readonly [K in StatementKind]: K extends OpKind ? true : false } = {
  Set: true,
  Unary: true,
  Cast: true,
  Binary: true,
  Reduction: true,
  Broadcast: true,
  Squeeze: true,
  Permute: true,
  Reshape: true,
  Slice: true,
  Select: true,
  Matmul: true,
  Linear: true,
  Allocate: false,
  Deallocate: false,
  GetCurrentStream: false,
  SetCurrentStream: false,
  Synchronize: false,
  ForLoop: false,
  IfThenElse: false,
  HirAliasSelect: false,
  Communication: false,
  P2PCommunication: false,
  StartCoalescing: false,
  EndCoalescing: false,
  ShareMemHandles: false,
  Wait: false,
  PostOnStream: false,
};

/** Whether a statement is an op of the Fusion IR, rather than one of the Host IR's own kinds. */
export function isOp(statement: Statement): statement is Op {
  return isOpKind[statement.kind];
}
