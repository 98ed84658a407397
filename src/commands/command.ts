/**
 * Commands: what a rank's streams do, as static data. docs/architecture.md states their semantics; a CommandList is one rank's
 * commands in issue order. Every command is on one stream of its rank and says exactly what it reads and writes
 * (accesses.ts derives the regions).
 *
 * Adding a kind: add it to `Command`, then follow the compile errors (accesses, link, print, machine, back ends).
 */
import type { Id } from "../support/ids.ts";
import type { BufferId, Buffer } from "./buffer.ts";
import type { Kernel } from "./kernel.ts";
import type { Collective, PointToPointGroup, View } from "./transfer.ts";

/** Counts the streams of one rank; 0 is the caller's. */
export type CommandStreamId = Id<"CommandStream">;
/** Counts the recordEvents of one list. */
export type EventId = Id<"Event">;
export type KernelId = Id<"Kernel">;
export type TransferId = Id<"Transfer">;
export type SlotId = Id<"Slot">;

export interface BufferRef {
  readonly buffer: BufferId;
  /** In bytes. */
  readonly offset: number;
}

/** copy: the copy engines. kernel: a kernel of few blocks, which starts sooner and takes a little of what computes beside it. */
export type CopyEngine = "copy" | "kernel";

interface CommandBase {
  readonly stream: CommandStreamId;
}

/** Runs a kernel; operands by position of the kernel's inputs and outputs. */
export interface Launch extends CommandBase {
  readonly kind: "launch";
  readonly kernel: KernelId;
  readonly inputs: readonly BufferRef[];
  readonly outputs: readonly BufferRef[];
  /** Multiprocessors that a product leaves to kernels beside it on a GPU, none if not given. Nothing but time depends on it. */
  readonly smMargin?: number;
}
/** Copies elements of equal shape and dtype. Never overlapping. In a linked Program either side may be a peer's buffer. */
export interface Copy extends CommandBase {
  readonly kind: "copy";
  readonly source: View;
  readonly destination: View;
  /** What moves it on a GPU, the copy engines if not given. Nothing but time depends on it. */
  readonly engine?: CopyEngine;
}
/** In a CommandList `transfer` is the k-th use of its communicator; link matches the members and gives `id`. */
interface Transfer extends CommandBase {
  readonly kind: "transfer";
  readonly communicator: string;
  readonly operation: Collective | PointToPointGroup;
}
interface RecordEvent extends CommandBase {
  readonly kind: "recordEvent";
  readonly event: EventId;
}
interface WaitEvent extends CommandBase {
  readonly kind: "waitEvent";
  readonly event: EventId;
}
export interface Signal extends CommandBase {
  readonly kind: "signal";
  readonly slot: SlotId;
}
interface WaitSignal extends CommandBase {
  readonly kind: "waitSignal";
  readonly slot: SlotId;
}
interface Alloc extends CommandBase {
  readonly kind: "alloc";
  readonly buffer: BufferId;
}
interface Free extends CommandBase {
  readonly kind: "free";
  readonly buffer: BufferId;
}

export type Command = Launch | Copy | Transfer | RecordEvent | WaitEvent | Signal | WaitSignal | Alloc | Free;
export type CommandKind = Command["kind"];

/**
 * One-sided point-to-point (the CUDA idiom) before link: a rank knows its own half only. Link resolves
 * `peer` halves by pairing the k-th send from s to d with the k-th recv on d from s.
 */
export interface OneSided {
  readonly protocol: "get" | "put";
  readonly role: "send" | "recv";
  readonly peer: number;
  /** k: the how-many-th op of this role with this peer in the list. */
  readonly sequence: number;
  readonly view: View;
}

/** A signal of a one-sided pair; link gives it the pair's slot. */
export interface SignalPeer extends CommandBase {
  readonly kind: "signalPeer";
  readonly pair: number;
  readonly slot: "ready" | "done";
}
/** A wait for a signal of a one-sided pair. */
export interface WaitPeer extends CommandBase {
  readonly kind: "waitPeer";
  readonly pair: number;
  readonly slot: "ready" | "done";
}
/** The copy of a get (peer's buffer to own) or of a put (own to peer's). */
export interface CopyPeer extends CommandBase {
  readonly kind: "copyPeer";
  readonly pair: number;
}

/**
 * A collective in the CUDA idiom before link: members signal each other, copy from each other's memory, and combine what lies there.
 * Link matches the k-th of a communicator on all members, as it does transfers; a member's commands name it by its place
 * in `peerCollectives`.
 */
export interface PeerCollective {
  readonly communicator: string;
  readonly operation: Collective;
  /**
   * Positions of the members that combine a slice of all inputs into all outputs, of an Allreduce; null where every member makes its
   * whole result. Link cuts the slices, since only it knows how the tensors of all members lie.
   */
  readonly combining: readonly number[] | null;
}

/**
 * ready: you may read my input and, where slices are combined, write my output. done: I have read what I need of yours, and written
 * what I combine for you.
 */
export type MemberSlot = "ready" | "done";

interface MemberCommand extends CommandBase {
  readonly collective: number;
  /** The other one's position in the team. */
  readonly member: number;
}
/** A signal to a member; link gives every collective slots of its own. */
export interface SignalMember extends MemberCommand {
  readonly kind: "signalMember";
  readonly slot: MemberSlot;
}
/** A wait for a signal of a member. */
export interface WaitMember extends MemberCommand {
  readonly kind: "waitMember";
  readonly slot: MemberSlot;
}
/** Copies the piece of this rank's result that `member` (also oneself) has as its input. */
export interface CopyMember extends MemberCommand {
  readonly kind: "copyMember";
}
/** Combines the members' inputs in team order: into this rank's result or, of a slice, into the results of all members. */
export interface CombineMembers extends CommandBase {
  readonly kind: "combineMembers";
  readonly collective: number;
}

/** What a list holds where the final command needs what other ranks know. */
export type UnlinkedCommand =
  | Exclude<Command, Signal | WaitSignal>
  | SignalPeer
  | WaitPeer
  | CopyPeer
  | SignalMember
  | WaitMember
  | CopyMember
  | CombineMembers;

export interface StreamInfo {
  readonly id: CommandStreamId;
  /** caller: stream 0. worker: a host program's stream. communicator: a library's own stream. lane: a copy lane. */
  readonly role: "caller" | "worker" | "communicator" | "lane";
  readonly name: string;
}

/** Where a command came from: for messages, traces and findings; never for meaning. */
export interface Origin {
  /** The statement in one line, as printed. */
  readonly statement: string;
  /** Path of positions in the host program's body: [4, 2] is the third statement of the fifth. */
  readonly path: readonly number[];
  /** Values of the enclosing loops' indices, outermost first. */
  readonly iteration: readonly number[];
}

export interface CommandList {
  readonly kind: "CommandList";
  readonly rank: number;
  readonly streams: readonly StreamInfo[];
  readonly buffers: readonly Buffer[];
  readonly kernels: readonly Kernel[];
  /** The one-sided ops of this rank: `pair` of a command is an index here. */
  readonly pairs: readonly OneSided[];
  /** The collectives in the CUDA idiom: `collective` of a command is an index here. */
  readonly peerCollectives: readonly PeerCollective[];
  readonly eventCount: number;
  readonly commands: readonly UnlinkedCommand[];
  /** origins[i] is the origin of commands[i]. */
  readonly origins: readonly Origin[];
}
