/**
 * A Program is the linked command lists of all ranks: what is verified, simulated and executed. Buffers, kernels,
 * transfers and slots are numbered over all ranks; commands are stored per rank in list order.
 */
import type { Arena, PlacedBuffer } from "./buffer.ts";
import type { Command, Origin, SlotId, StreamInfo, TransferId } from "./command.ts";
import type { Kernel } from "./kernel.ts";
import type { Collective, PointToPointGroup } from "./transfer.ts";

/** A member of a matched transfer: which command of which rank. */
export interface Participant {
  readonly rank: number;
  readonly command: number;
  readonly operation: Collective | PointToPointGroup;
}

/**
 * A matched transfer. For a collective: all members in team order; no member completes before all have arrived.
 * For point-to-point groups: link joins groups that exchange with each other, directly or through others; `edges` say who
 * sends what to whom. A group member needs only its direct partners to have arrived, so one transfer may hold two groups of
 * one rank that run one after the other.
 */
export type LinkedTransfer =
  | {
      readonly kind: "collective";
      readonly id: TransferId;
      readonly communicator: string;
      readonly participants: readonly Participant[];
    }
  | {
      readonly kind: "group";
      readonly id: TransferId;
      readonly communicator: string;
      readonly participants: readonly Participant[];
      readonly edges: readonly TransferEdge[];
    };

/** members[from].ops[sendOp] delivers into members[to].ops[recvOp]. */
export interface TransferEdge {
  readonly from: number;
  readonly sendOp: number;
  readonly to: number;
  readonly recvOp: number;
}

export interface Slot {
  readonly id: SlotId;
  readonly signaller: number;
  readonly waiter: number;
}

export interface RankProgram {
  readonly rank: number;
  readonly streams: readonly StreamInfo[];
  readonly eventCount: number;
  readonly commands: readonly Command[];
  readonly origins: readonly Origin[];
  /** transferOf[i]: the transfer of commands[i], or null. */
  readonly transferOf: readonly (TransferId | null)[];
  /** Bytes of each arena of this rank. */
  readonly arenaBytes: { readonly [A in Arena]: number };
}

export interface Program {
  readonly kind: "Program";
  /** Indexed by rank. */
  readonly ranks: readonly RankProgram[];
  /** Indexed by BufferId. */
  readonly buffers: readonly PlacedBuffer[];
  /** Indexed by KernelId. */
  readonly kernels: readonly Kernel[];
  /** Indexed by TransferId. */
  readonly transfers: readonly LinkedTransfer[];
  /** Indexed by SlotId. */
  readonly slots: readonly Slot[];
}
