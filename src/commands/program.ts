/**
 * A Program is the linked command lists of all ranks, which is rewritten, verified, simulated and executed. Buffers,
 * kernels, transfers and slots are numbered over all ranks. Commands stay with their rank, in list order.
 */
import type { Arena, PlacedBuffer } from "./buffer.ts";
import type {
  Collective,
  Command,
  KernelId,
  Origin,
  PointToPointGroup,
  SlotId,
  StreamInfo,
  TransferId,
} from "./command.ts";
import type { UnlinkedCommand } from "./command-list.ts";
import type { Kernel } from "./kernel.ts";
import { at } from "../support/invariant.ts";

/** One rank's command in a matched transfer. */
export interface Participant {
  readonly rank: number;
  readonly command: number;
  readonly operation: Collective | PointToPointGroup;
}

/**
 * A matched transfer. A collective has one participant per rank, in team order; none completes before all have
 * arrived. A group joins the point-to-point groups that exchange with each other, directly or through others, and
 * `edges` are its sends. A participant of a group needs only its direct peers to have arrived, so that a group may
 * have two commands of one rank that run one after the other.
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

/** Op `sendOp` of participant `from` delivers into op `recvOp` of participant `to`. */
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
  /** transferOf[i] is the transfer of commands[i], or null. */
  readonly transferOf: readonly (TransferId | null)[];
  /** Bytes of each arena of this rank. */
  readonly arenaBytes: { readonly [A in Arena]: number };
  /** Not enumerable: a changed copy of the rank has none. */
  readonly linkedFrom?: LinkedFrom;
}

/** Bytes of all arenas of a rank. */
export function reservedBytes({ arenaBytes }: Pick<RankProgram, "arenaBytes">): number {
  return Object.values(arenaBytes).reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * What `link` made the commands of a rank from. Ranks that were recorded at once have the same objects at most
 * positions. Two events, allocs, frees, launches or copies that are one unlinked command differ in nothing but their
 * buffers' ids, by the difference of the bases, if both ranks have the same kernels.
 */
export interface LinkedFrom {
  readonly unlinked: readonly UnlinkedCommand[];
  /** The id of the rank's first buffer. */
  readonly bufferBase: number;
  readonly kernelOf: readonly KernelId[];
  /** One command, without making the others. */
  readonly commandAt: (index: number) => Command;
}

/** A command of a rank, without making the others. */
export function linkedCommandAt(rank: RankProgram, index: number): Command {
  return rank.linkedFrom?.commandAt(index) ?? at(rank.commands, index);
}

export function commandCount(rank: RankProgram): number {
  return (rank.linkedFrom?.unlinked ?? rank.commands).length;
}

/** The commands of all ranks, without making any. */
export function commandsOfRanks(ranks: readonly RankProgram[]): number {
  return ranks.reduce((sum, rank) => sum + commandCount(rank), 0);
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
  /** Ranks 0 .. n-1 are on the first host, and so on. Without it, all ranks are on one host. */
  readonly devicesPerHost?: number;
  /** It has the first of so many replicas (`CompileOptions.oneReplica`); absent if it has all ranks. */
  readonly replicas?: number;
}
