/**
 * A CommandList is what `record` makes of one rank's host program. It is a list of commands in issue order; where a command needs what only
 * other ranks know, the list names a one-sided pair or a collective instead, and `link` fills in the peer's half.
 */
import type { Buffer } from "./buffer.ts";
import type { Command, CommandBase, Origin, Signal, StreamInfo, WaitSignal } from "./command.ts";
import type { Kernel } from "./kernel.ts";
import type { Collective } from "./transfer.ts";
import type { View } from "./view.ts";

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
export type SlotRole = "ready" | "done";

interface RankCommand extends CommandBase {
  readonly collective: number;
  /** The other one's position in the team. */
  readonly position: number;
}
/** A signal to a member; link gives every collective slots of its own. */
export interface SignalRank extends RankCommand {
  readonly kind: "signalRank";
  readonly slot: SlotRole;
}
/** A wait for a signal of a member. */
export interface WaitRank extends RankCommand {
  readonly kind: "waitRank";
  readonly slot: SlotRole;
}
/** Copies the piece of this rank's result that `member` (also oneself) has as its input. */
export interface CopyRank extends RankCommand {
  readonly kind: "copyRank";
}
/** Combines the members' inputs in team order: into this rank's result or, of a slice, into the results of all members. */
export interface CombineRanks extends CommandBase {
  readonly kind: "combineRanks";
  readonly collective: number;
}

/** What a list holds where the final command needs what other ranks know. */
export type UnlinkedCommand =
  | Exclude<Command, Signal | WaitSignal>
  | SignalPeer
  | WaitPeer
  | CopyPeer
  | SignalRank
  | WaitRank
  | CopyRank
  | CombineRanks;

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
