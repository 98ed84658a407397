/** What the statements of one Stream loop are written with. */
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { Statement, StreamId } from "../../../host/nodes.ts";
import type { LoopEdit } from "./loop-edit.ts";
import type { LoweringOptions } from "../../options.ts";
import type { Slicer } from "./slicer.ts";

export interface LoopContext {
  readonly edit: LoopEdit;
  readonly slicer: Slicer;
  readonly rank: number;
  readonly options: LoweringOptions;
  /** 0 .. stop-1 */
  readonly iteration: Scalar;
  /** The chunk of the iteration: the iteration itself, or `( ( position + iteration ) % stop )` in a rotated loop. */
  readonly index: Scalar;
  readonly isRotated: boolean;
  readonly stop: Scalar;
  readonly worker: StreamId;
}

/** Where an op puts its statements: into the iteration, and behind all ops of the iteration. */
export interface IterationStatements {
  readonly body: readonly Statement[];
  readonly epilogue: readonly Statement[];
}
