/**
 * Transfers: one command of each member that moves data between ranks through a library (NCCL; shared memory
 * on the CPU). A collective, or a coalesced group of sends and receives as ONE command with a list of mutually
 * unordered ops.
 *
 * A View is a strided box of elements in a buffer; strides in elements, so that members need no packed copies in the
 * list (packing, where a library needs it, is the back end's hidden scratch).
 */
import type { DType } from "../numerics/dtype.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";
import type { CollectiveType } from "../host/collectives.ts";
import type { BufferId } from "./buffer.ts";

export interface View {
  readonly buffer: BufferId;
  /** In bytes. */
  readonly offset: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
}

/**
 * One member's part. `input`/`output` are null where the member reads or writes nothing (the table in
 * collectives.ts says which). Where a kind splits a side into parts (the output of Allgather and Gather, the input of
 * ReduceScatter and Scatter, both of AllToAll), axis 0 of that view counts the members that hold a part, in team
 * order: the whole team, but for a root that was appended to it and has none.
 */
export interface Collective {
  readonly kind: "collective";
  readonly type: CollectiveType;
  /** Ranks in team order. */
  readonly team: readonly number[];
  /** Position in the team, for rooted types; else null. */
  readonly root: number | null;
  readonly reduceOp: ReductionOpType | null;
  readonly input: View | null;
  readonly output: View | null;
}

export interface PointToPoint {
  readonly type: "send" | "recv";
  /** The other rank. */
  readonly peer: number;
  readonly view: View;
}

export interface PointToPointGroup {
  readonly kind: "group";
  readonly ops: readonly PointToPoint[];
}
