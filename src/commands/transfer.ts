/**
 * Transfers move data between ranks through a library: NCCL on GPUs, shared memory on the CPU. A transfer is a
 * collective, or a group of sends and receives without an order among each other. Each participating rank has one
 * transfer command with its own half.
 *
 * Views may be strided. If a library needs packed copies, the back end makes them in scratch that no list shows.
 */
import type { CollectiveType } from "../host/collectives.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";
import type { View } from "./view.ts";

/**
 * One rank's half of a collective. `input` and `output` are null if the table of collectives (src/host/collectives.ts)
 * says that the rank reads or writes nothing. Axis 0 of a side that the table splits numbers the ranks that hold a
 * slice, in team order. These are the whole team, except a root from outside the mesh, which was appended to the team
 * and holds none.
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
