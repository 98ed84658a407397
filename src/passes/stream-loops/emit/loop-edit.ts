/** The tables of the program that a Stream loop is written into, and how they grow. */
import type { Tensor } from "../../../ir/domain.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { ExprId, HostStream, StreamId } from "../../../host/nodes.ts";
import { makeId } from "../../../support/ids.ts";

export interface LoopEdit {
  readonly tensors: Tensor[];
  readonly streams: HostStream[];
  iterDomainCount: number;
  exprCount: number;
}

export function addStream(edit: LoopEdit, index: Scalar | null): StreamId {
  const id = makeId<StreamId>(edit.streams.length);
  edit.streams.push({ id, index });
  return id;
}

export function nextExpr(edit: LoopEdit): ExprId {
  return makeId<ExprId>(edit.exprCount++);
}
