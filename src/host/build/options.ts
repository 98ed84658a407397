/** The arguments of HostProgramBuilder's methods. */
import type { IterDomain } from "../../ir/api/iter-domain.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { MemoryType, ParallelType } from "../../ir/domain.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { CommunicatorBackend, ReduceOpType } from "../collectives.ts";
import type { Communication, EndCoalescing, ForLoop, P2PCommunication } from "../nodes.ts";

/** A number, or a scalar expression. */
export type ScalarLike = number | Scalar;

/**
 * One axis: a number of elements; null for an extent that is known only at run time and gets a name (`i0`); a scalar
 * expression, such as another tensor's extent; `{ reduced }` for an axis that an op has reduced and that only the
 * logical domain has; `"broadcast"` for an axis of one element that broadcasts.
 */
export type AxisSpec = number | null | Scalar | { readonly reduced: number | Scalar } | "broadcast";

export interface TensorOptions {
  /** "float" if not given. */
  readonly dtype?: DType;
  /** By default none: the tensor is only on device 0. */
  readonly mesh?: DeviceMesh;
  /**
   * One per axis of the loop domain, as `axis(i).parallelize` takes them. Axes after the end of the list are Serial.
   */
  readonly parallel?: readonly ParallelType[];
  /** "global" if not given. */
  readonly memory?: MemoryType;
}

export interface LoopSteps {
  /** 0 if not given. */
  readonly start?: ScalarLike;
  /** A whole number of at least 1; 1 if not given. */
  readonly step?: number;
}

/**
 * `over`: the axis that the loop prints and names its index `streamIdx` after; its extent ends the loop without `stop`.
 */
export type LoopRange = LoopSteps &
  (
    | { readonly stop: ScalarLike; readonly over?: IterDomain }
    | { readonly stop?: ScalarLike; readonly over: IterDomain }
  );

export type LoopIndex = ForLoop["index"];

export interface OutputOption {
  /** The tensor to write; a new one if not given. */
  readonly out?: TensorView | undefined;
}

export interface ContractionOptions extends OutputOption {
  /**
   * For a contraction in chunks, one statement each, into one `out`: false for the first chunk, true for each chunk
   * that is added to it. The reduced axis of `out` may be longer than the chunk's.
   */
  readonly accumulate?: boolean;
}

export interface CommunicationOptions {
  readonly input: TensorView;
  readonly output: TensorView;
  /** Device ids in team order; the devices of the input's mesh if not given. */
  readonly team?: readonly number[];
  /** For the rooted types: a position in the team. */
  readonly root?: ScalarLike;
  /** For the reducing types; "sum" if not given. */
  readonly reduceOp?: ReduceOpType;
  /** "nccl" if not given. */
  readonly backend?: CommunicatorBackend;
}

export interface PeerOptions {
  /** A device id. */
  readonly peer: ScalarLike;
  /** "nccl" if not given. */
  readonly backend?: CommunicatorBackend;
}

/** One side of a one-sided transfer whose memory handles are shared. */
export interface SharedPeer {
  readonly type: "send" | "recv";
  readonly buffer: TensorView;
  readonly peer: ScalarLike;
}

/** Statements that `wait` can wait for. */
export type Awaitable = Communication | P2PCommunication | EndCoalescing;
