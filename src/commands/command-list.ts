/**
 * A CommandList is the result of `record` for one rank's host program: its commands in issue order. A command that
 * depends on other ranks names a one-sided pair or a collective in peer memory, and `link` fills in the peer's half.
 */
import type { OneSidedProtocol } from "../host/collectives.ts";
import type { Buffer } from "./buffer.ts";
import type { Collective, Command, CommandBase, Origin, Signal, StreamInfo, WaitSignal } from "./command.ts";
import type { Kernel } from "./kernel.ts";
import type { View } from "./view.ts";

/**
 * One rank's half of a one-sided send and recv (the CUDA backend's form). Link pairs the k-th send from s to d with
 * the k-th recv on d from s.
 */
export interface OneSided {
  /** get: the receiver copies. put: the sender copies. */
  readonly protocol: OneSidedProtocol;
  readonly role: "send" | "recv";
  readonly peer: number;
  /** k, counted from 0 over the rank's ops of this role with this peer. */
  readonly sequence: number;
  readonly view: View;
}

/**
 * The role of a slot. ready: peers may access the signaller's memory: read its input and, if ranks share the work,
 * write its output. done: the signaller has read all it needs from the waiter's memory, and has written its slice of
 * the waiter's result.
 */
export type SlotRole = "ready" | "done";

interface PairCommand extends CommandBase {
  readonly pair: number;
}
/** Becomes a signal to the pair's other rank. */
export interface SignalPeer extends PairCommand {
  readonly kind: "signalPeer";
  readonly slot: SlotRole;
}
/** Becomes a wait for the pair's other rank. */
export interface WaitPeer extends PairCommand {
  readonly kind: "waitPeer";
  readonly slot: SlotRole;
}
/** Becomes the copy of a get (from the peer's buffer) or of a put (to the peer's buffer). */
export interface CopyPeer extends PairCommand {
  readonly kind: "copyPeer";
}

/**
 * One rank's half of a collective in peer memory (the CUDA backend's form). Ranks signal each other, copy from each
 * other's memory, and reduce data in place there. Link matches the k-th collective of a communicator on all ranks, as
 * it does for transfers.
 */
export interface PeerCollective {
  readonly communicator: string;
  readonly operation: Collective;
  /**
   * For an Allreduce, the positions of the ranks that combine a slice of all inputs into all outputs; null if every
   * rank makes its whole result. Link cuts the slices, because only it knows the tensors of all ranks.
   */
  readonly combining: readonly number[] | null;
}

interface CollectiveCommand extends CommandBase {
  readonly collective: number;
}
interface RankCommand extends CollectiveCommand {
  /** The other rank's position in the team. */
  readonly position: number;
}
/** Becomes a signal to the rank at `position`. */
export interface SignalRank extends RankCommand {
  readonly kind: "signalRank";
  readonly slot: SlotRole;
}
/** Becomes a wait for the rank at `position`. */
export interface WaitRank extends RankCommand {
  readonly kind: "waitRank";
  readonly slot: SlotRole;
}
/** Becomes a copy of the slice of this rank's result that the rank at `position` holds; that may be this rank. */
export interface CopyRank extends RankCommand {
  readonly kind: "copyRank";
}
/**
 * Becomes a launch that combines the inputs in team order, into this rank's result or, slice by slice, into all
 * results.
 */
export interface CombineRanks extends CollectiveCommand {
  readonly kind: "combineRanks";
}

/** A command before link. Commands of pairs and collectives get their operands from link. */
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
  /** `pair` of a command is an index here. */
  readonly pairs: readonly OneSided[];
  /** `collective` of a command is an index here. */
  readonly peerCollectives: readonly PeerCollective[];
  readonly eventCount: number;
  readonly commands: readonly UnlinkedCommand[];
  /** origins[i] is the origin of commands[i]. */
  readonly origins: readonly Origin[];
}
