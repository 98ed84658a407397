/**
 * The transfers of a Program as the machine runs them: participants numbered over all transfers, the credits that
 * complete each, and the moves. A rendezvous counts arrivals: the participants of a collective, or the two ends of one
 * send.
 */
import type { Collective, PointToPointGroup, TransferId } from "../../commands/command.ts";
import type { LinkedTransfer, Program, TransferEdge } from "../../commands/program.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type MoveChain, collectiveChains, copyChains, type MovePhase } from "./moves.ts";

/** One participant of one transfer. */
export interface NumberedParticipant {
  readonly rank: number;
  /** Position of the transfer in the rank's list. */
  readonly command: number;
  readonly queue: number;
  readonly transfer: TransferId;
  /** Its position among the participants of the transfer. */
  readonly position: number;
  /** The number of credits that complete it in a run: one in a collective; in a group one per send and receive. */
  readonly credits: number;
}

export interface CollectiveTable {
  readonly kind: "collective";
  /** The number of the participant at position 0. The others follow. */
  readonly firstParticipant: number;
  /** In team order. */
  readonly operations: readonly Collective[];
  /** Run in order, once all participants have arrived. */
  readonly phases: readonly MovePhase[];
  readonly rendezvous: number;
}

export interface GroupTable {
  readonly kind: "group";
  readonly firstParticipant: number;
  readonly operations: readonly PointToPointGroup[];
  readonly edges: readonly EdgeTable[];
  /** edgesOf[position]: indices of the edges that begin or end there. */
  readonly edgesOf: readonly (readonly number[])[];
}

interface EdgeTable extends TransferEdge {
  readonly phases: readonly MovePhase[];
  readonly rendezvous: number;
}

export type TransferTable = CollectiveTable | GroupTable;

export interface TransferTables {
  readonly participants: readonly NumberedParticipant[];
  /** participantOf[rank].get(command): the participant of a transfer command. */
  readonly participantOf: readonly ReadonlyMap<number, number>[];
  /** Indexed by TransferId. */
  readonly transfers: readonly TransferTable[];
  readonly rendezvousCount: number;
  /** In order of their numbers. */
  readonly phases: readonly MovePhase[];
}

/** `queueOf(rank, stream)` is the queue that runs a stream's commands. */
export function createTransferTables(
  program: Program,
  queueOf: (rank: number, stream: number) => number,
): TransferTables {
  const participants: NumberedParticipant[] = [];
  const participantOf = program.ranks.map(() => new Map<number, number>());
  let rendezvousCount = 0;
  const phases: MovePhase[] = [];
  const numbered = (chains: readonly MoveChain[]): readonly MovePhase[] => {
    if (chains.length === 0) return [];
    const phase = { number: phases.length, chains };
    phases.push(phase);
    return [phase];
  };
  const transfers = program.transfers.map((transfer): TransferTable => {
    const firstParticipant = participants.length;
    for (const [position, { rank, command, operation }] of transfer.participants.entries()) {
      at(participantOf, rank).set(command, participants.length);
      participants.push({
        rank,
        command,
        queue: queueOf(rank, at(at(program.ranks, rank).commands, command).stream),
        transfer: transfer.id,
        position,
        credits: operation.kind === "collective" ? 1 : operation.ops.length,
      });
    }
    const table = tableOf(transfer, firstParticipant, rendezvousCount, numbered);
    rendezvousCount += table.kind === "collective" ? 1 : table.edges.length;
    return table;
  });
  return { participants, participantOf, transfers, rendezvousCount, phases };
}

function tableOf(
  transfer: LinkedTransfer,
  firstParticipant: number,
  firstRendezvous: number,
  numbered: (chains: readonly MoveChain[]) => readonly MovePhase[],
): TransferTable {
  if (transfer.kind === "collective") {
    const operations = transfer.participants.map(({ operation }) => {
      invariant(operation.kind === "collective", "the participants of a collective are collectives", transfer.id);
      return operation;
    });
    const phases = collectiveChains(operations).flatMap(numbered);
    return { kind: "collective", firstParticipant, operations, phases, rendezvous: firstRendezvous };
  }
  const operations = transfer.participants.map(({ operation }) => {
    invariant(operation.kind === "group", "the participants of a group are groups", transfer.id);
    return operation;
  });
  const edgesOf = operations.map((): number[] => []);
  const edges = transfer.edges.map((edge, index): EdgeTable => {
    const { from, sendOp, to, recvOp } = edge;
    at(edgesOf, from).push(index);
    if (to !== from) at(edgesOf, to).push(index);
    const send = at(at(operations, from).ops, sendOp);
    const recv = at(at(operations, to).ops, recvOp);
    return { ...edge, phases: numbered(copyChains(from, send.view, recv.view)), rendezvous: firstRendezvous + index };
  });
  return { kind: "group", firstParticipant, operations, edges, edgesOf };
}
