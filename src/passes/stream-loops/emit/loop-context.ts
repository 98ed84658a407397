/** The state with which the statements of one Stream loop are emitted. */
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { ExprId, HostStream, HostUnit, Statement, StreamId, UnitId } from "../../../host/nodes.ts";
import { makeId } from "../../../support/ids.ts";
import type { TensorEdit } from "../../edit/tensor-edit.ts";
import type { PassContext } from "../../pass.ts";
import type { Slicer } from "./slicer.ts";

/** The tables of the host program that loops are added to. */
export interface LoopEdit extends TensorEdit {
  readonly streams: HostStream[];
  readonly units: HostUnit[];
  /** The units that several statements post. */
  readonly shared: ReadonlySet<UnitId>;
  scalarCount: number;
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

export interface LoopContext extends PassContext {
  readonly edit: LoopEdit;
  readonly slicer: Slicer;
  /** The loop's index, 0 .. stop-1. */
  readonly iteration: Scalar;
  /**
   * The chunk that the iteration works on: the iteration itself, or `( ( position * pieces + iteration ) % stop )` in a
   * rotated loop.
   */
  readonly index: Scalar;
  readonly isRotated: boolean;
  readonly stop: Scalar;
  readonly worker: StreamId;
}

/** The statements of an op in an iteration: at its place among the ops, and after all ops. */
export interface IterationStatements {
  readonly body: readonly Statement[];
  readonly epilogue: readonly Statement[];
}
