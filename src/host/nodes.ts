/**
 * Host IR: statements in scopes. A HostProgram has the statements that one rank's host thread issues. It does not refer
 * to a Fusion, and is symbolic in extents, streams and rank.
 *
 * To add a statement kind, add it to `Statement` and follow the compile errors: its syntax row, its accesses,
 * validation, recording. Then give HostProgramBuilder a method for it, unless only dumps have it.
 */
import type { IterDomain, Tensor, TensorId } from "../ir/domain.ts";
import type { Alias, FusionData } from "../ir/fusion-data.ts";
import type { Op } from "../ir/ops/op.ts";
import type { Scalar } from "../ir/scalar/scalar.ts";
import type { CallSite } from "../support/call-site.ts";
import type { Id } from "../support/invariant.ts";
import type { CommunicationType, CommunicatorBackend, ReduceOpType } from "./collectives.ts";

export type StreamId = Id<"Stream">;
export type UnitId = Id<"HostUnit">;
/** The number of a Communication, P2PCommunication or EndCoalescing, which prints and which Wait refers to. */
export type ExprId = Id<"Expr">;

/** With an `index`, the stream for the index's value at run time. Otherwise a separate stream of this node. */
export interface HostStream {
  readonly id: StreamId;
  readonly index: Scalar | null;
}

/**
 * A group of ops that run as one kernel. Inputs and outputs of its fusion match those of a PostOnStream by position.
 */
export interface HostUnit {
  readonly id: UnitId;
  readonly fusion: FusionData;
  /** Set if the unit has an op that Braid lacks. Then `fusion` has no ops, and the unit can be verified but not run. */
  readonly opaque?: OpaqueBody;
}

export interface OpaqueBody {
  /** The first unknown op. */
  readonly op: string;
  /** The kernel's text. */
  readonly lines: readonly string[];
}

export interface Allocate {
  readonly kind: "Allocate";
  readonly tensor: TensorId;
  readonly memory: "global" | "symmetric";
  readonly size: Scalar;
  readonly zeroInit: boolean;
  /** Whether the tensor gets new memory although it has some. If not, it keeps it, as in later iterations of a loop. */
  readonly fresh: boolean;
}
export interface Deallocate {
  readonly kind: "Deallocate";
  readonly tensor: TensorId;
}
export interface GetCurrentStream {
  readonly kind: "GetCurrentStream";
  readonly stream: StreamId;
}
export interface SetCurrentStream {
  readonly kind: "SetCurrentStream";
  readonly stream: StreamId;
}
/** The current stream waits for all work on `stream` so far. */
export interface Synchronize {
  readonly kind: "Synchronize";
  readonly stream: StreamId;
}
export interface ForLoop {
  readonly kind: "ForLoop";
  /** The axis that the loop prints and runs over; null prints the plain form `FOR i from a to b`. */
  readonly iterDomain: IterDomain | null;
  readonly index: Extract<Scalar, { kind: "named" | "symbol" }>;
  readonly start: Scalar;
  readonly stop: Scalar;
  readonly step: Scalar;
  readonly body: readonly Statement[];
}
export interface IfThenElse {
  readonly kind: "IfThenElse";
  readonly predicate: Scalar;
  readonly then: readonly Statement[];
  readonly else: readonly Statement[];
}
/**
 * Binds `output` to the view of `input` at `index` along `axis`, a position in the logical domain that counts reduced
 * axes.
 */
export interface HirAliasSelect {
  readonly kind: "HirAliasSelect";
  readonly input: TensorId;
  readonly output: TensorId;
  readonly axis: number;
  readonly index: Scalar;
}
/**
 * Binds `output` to chunk `index` of `parts` equal ones of `input` along `axis`, a position among the axes that exist
 * at run time. The output keeps the axis. If `swizzled`, each device begins with its own chunk: it takes chunk
 * ( index + its position along DIDx ) % parts.
 */
export interface ShardByStream {
  readonly kind: "ShardByStream";
  readonly input: TensorId;
  readonly output: TensorId;
  readonly axis: number;
  readonly parts: Scalar;
  readonly index: Scalar;
  readonly swizzled: boolean;
}
/** Gives a value of the statements that follow a name: `i12 = 0 - i10;`. */
export interface Define {
  readonly kind: "Define";
  readonly name: string;
  readonly value: Scalar;
}
export interface Communication {
  readonly kind: "Communication";
  readonly id: ExprId;
  readonly type: CommunicationType;
  /** Device ids in team order. */
  readonly team: readonly number[];
  /** A position in `team`, for the rooted types; else null. */
  readonly root: Scalar | null;
  /** For the reducing types; else null. */
  readonly reduceOp: ReduceOpType | null;
  readonly input: TensorId;
  readonly output: TensorId;
  readonly backend: CommunicatorBackend;
}
/** `peer` is a device id. */
export interface P2PCommunication {
  readonly kind: "P2PCommunication";
  readonly id: ExprId;
  readonly type: "send" | "recv";
  readonly buffer: TensorId;
  readonly peer: Scalar;
  readonly backend: CommunicatorBackend;
}
/** Every device of the team sends to one and receives from one. The peers are positions in the team. */
export interface CollectivePermute {
  readonly kind: "CollectivePermute";
  readonly id: ExprId;
  readonly team: readonly number[];
  readonly sendPeer: Scalar;
  readonly recvPeer: Scalar;
  readonly input: TensorId;
  readonly output: TensorId;
  readonly backend: CommunicatorBackend;
}
/** What a team of devices does together, and Wait waits for. */
export type TeamCommunication = Communication | CollectivePermute;

export interface StartCoalescing {
  readonly kind: "StartCoalescing";
}
export interface EndCoalescing {
  readonly kind: "EndCoalescing";
  readonly id: ExprId;
}
export interface ShareMemHandles {
  readonly kind: "ShareMemHandles";
  readonly communications: readonly P2PCommunication[];
}
/** The current stream waits for the latest post of `target` in this run. */
export interface Wait {
  readonly kind: "Wait";
  readonly target: ExprId;
}
export interface PostOnStream {
  readonly kind: "PostOnStream";
  readonly unit: UnitId;
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
}

/**
 * Launches a kernel that the program does not hold. It reads the inputs and writes the outputs, can be verified and
 * cannot be run.
 */
export interface LaunchKernel {
  readonly kind: "LaunchKernel";
  /** nvFuser's number of the kernel. */
  readonly group: number;
  readonly inputs: readonly (TensorId | Scalar)[];
  readonly outputs: readonly TensorId[];
}

export type Statement =
  | Op
  | Allocate
  | Deallocate
  | GetCurrentStream
  | SetCurrentStream
  | Synchronize
  | ForLoop
  | IfThenElse
  | HirAliasSelect
  | ShardByStream
  | Define
  | Communication
  | P2PCommunication
  | CollectivePermute
  | StartCoalescing
  | EndCoalescing
  | ShareMemHandles
  | Wait
  | PostOnStream
  | LaunchKernel;

export type StatementKind = Statement["kind"];

export interface HostProgram {
  readonly kind: "HostProgram";
  /** Indexed by TensorId. */
  readonly tensors: readonly Tensor[];
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
  /** Outputs in the buffers of inputs. A pass puts the input in place of the output; dumps do not say it. */
  readonly aliases?: readonly Alias[];
  /** Indexed by StreamId. */
  readonly streams: readonly HostStream[];
  /** Indexed by UnitId. */
  readonly units: readonly HostUnit[];
  readonly body: readonly Statement[];
  /** The user's calls that made the statements, as `walk` counts these; null for one that is not known. */
  readonly calls?: readonly (CallSite | null)[];
  /** By statement of the body: the region it came from, where each has options and a schedule of its own. */
  readonly regions?: readonly number[];
  readonly iterDomainCount: number;
  readonly scalarCount: number;
  /** The next ExprId. */
  readonly exprCount: number;
}

/** Whether a value is a HostProgram, by its `kind`, so that one from another copy of the package counts. */
export function isHostProgram(value: unknown): value is HostProgram {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "HostProgram";
}
