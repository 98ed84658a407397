/**
 * Commands: the work of a rank's streams, as static data. docs/commands.md defines their semantics. Each command is on
 * one stream of its rank, and its operands state exactly what it reads and writes (region.ts has the regions).
 *
 * To add a kind: add it to `Command`, then follow the compile errors (accesses, link, text, machine, back ends).
 */
import type { CollectiveType } from "../host/collectives.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";
import type { Id } from "../support/invariant.ts";
import type { BufferId, BufferRef } from "./buffer.ts";
import type { View } from "./view.ts";

/** Counts the streams of one rank; 0 is the caller's. */
export type CommandStreamId = Id<"CommandStream">;
/** Counts the recordEvents of one list. */
export type EventId = Id<"Event">;
export type KernelId = Id<"Kernel">;
export type TransferId = Id<"Transfer">;
export type SlotId = Id<"Slot">;

/** A command of one rank, by its position in the rank's list. */
export interface CommandRef {
  readonly rank: number;
  readonly command: number;
}

export interface CommandBase {
  readonly stream: CommandStreamId;
}

/** Runs a kernel. `inputs` and `outputs` are in the order of the kernel's. */
export interface Launch extends CommandBase {
  readonly kind: "launch";
  readonly kernel: KernelId;
  readonly inputs: readonly BufferRef[];
  readonly outputs: readonly BufferRef[];
  /**
   * For a kernel that computes from indices of whole tensors: where the launch begins in them. Launches on other ranks
   * and of other chunks differ in origins and share the kernel. None by default.
   */
  readonly origins?: readonly number[];
  /** SM margin: the multiprocessors that a GEMM leaves free on a GPU; 0 by default. It affects only time. */
  readonly smMargin?: number;
}
/**
 * Copies elements between views of equal shape and dtype that do not overlap. In a Program either side may be a
 * peer's buffer.
 */
export interface Copy extends CommandBase {
  readonly kind: "copy";
  readonly source: View;
  readonly destination: View;
}
/** One rank's half of a transfer. Link matches the k-th use of a communicator on all ranks. */
export interface Transfer extends CommandBase {
  readonly kind: "transfer";
  readonly communicator: string;
  readonly operation: Collective | PointToPointGroup;
}
export interface RecordEvent extends CommandBase {
  readonly kind: "recordEvent";
  readonly event: EventId;
}
export interface WaitEvent extends CommandBase {
  readonly kind: "waitEvent";
  readonly event: EventId;
}
export interface Signal extends CommandBase {
  readonly kind: "signal";
  readonly slot: SlotId;
}
export interface WaitSignal extends CommandBase {
  readonly kind: "waitSignal";
  readonly slot: SlotId;
}
export interface Alloc extends CommandBase {
  readonly kind: "alloc";
  readonly buffer: BufferId;
}
export interface Free extends CommandBase {
  readonly kind: "free";
  readonly buffer: BufferId;
}

export type Command = Launch | Copy | Transfer | RecordEvent | WaitEvent | Signal | WaitSignal | Alloc | Free;
export type CommandKind = Command["kind"];

/** Whether the command blocks its stream until another rank has acted. */
export function isBlocking({ kind }: Pick<Command, "kind">): boolean {
  return kind === "waitSignal" || kind === "transfer";
}

/** Whether a blocking command of another rank can wait for it. */
export function isSignalling({ kind }: Pick<Command, "kind">): boolean {
  return kind === "signal" || kind === "transfer";
}

/** Commands that read or write buffers. The others mark lifetimes or order streams. */
export type WorkKind = "launch" | "copy" | "transfer";

export function isWork(kind: CommandKind): kind is WorkKind {
  return kind === "launch" || kind === "copy" || kind === "transfer";
}

export interface StreamInfo {
  readonly id: CommandStreamId;
  /**
   * caller: stream 0. worker: a host program's stream. communicator: a library's own stream. pair: one for the single
   * sends and receives of two ranks. copy: the stream of copies over links.
   */
  readonly role: "caller" | "worker" | "communicator" | "pair" | "copy";
  readonly name: string;
}

/** The origin of a command, for messages, traces and findings. It never affects the command's effect. */
export interface Origin {
  /** The statement in one line, as printed. */
  readonly statement: string;
  /** Path of positions in the host program's body: [4, 2] is the third statement of the fifth. */
  readonly path: readonly number[];
  /** Values of the enclosing loops' indices, outermost first. */
  readonly iteration: readonly number[];
  /** See `HostProgram.regions`. */
  readonly region?: number;
}

/** The statement, with the values of the loops around it. */
export function originText({ statement, iteration }: Origin): string {
  return iteration.length === 0 ? statement : `${statement} (iteration ${iteration.join(", ")})`;
}

// Transfers move data between ranks through a library: NCCL on GPUs, shared memory on the CPU. A transfer is a
// collective, or a group of sends and receives without an order among each other. Each participating rank has one
// transfer command with its own half.
//
// Views may be strided. If a library needs packed copies, the back end makes them in scratch that no list shows.

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
  /** In a Program of one replica, of a collective with others: the whole team, of which `team` has this rank alone. */
  readonly wholeTeam?: readonly number[];
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
