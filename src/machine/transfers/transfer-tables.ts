/**
 * The transfers of a Program as the machine runs them: members numbered over all transfers, what each needs to complete, and the
 * moves. A meeting word counts who has come: the members of a collective, or the two ends of one send.
 */
import type { TransferId } from "../../commands/command.ts";
import type { LinkedTransfer, Program, TransferEdge } from "../../commands/program.ts";
import type { Collective, PointToPointGroup } from "../../commands/transfer.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type Chain, collectiveChains, copyChains, type Phase } from "./moves.ts";

/** One member of one transfer. */
export interface Member {
  readonly rank: number;
  /** Position of the transfer in the rank's list. */
  readonly command: number;
  readonly queue: number;
  readonly transfer: TransferId;
  /** Its position among the members of the transfer. */
  readonly position: number;
  /** How many credits complete it in a run: one in a collective, in a group one for each of its sends and receives. */
  readonly credits: number;
}

export interface CollectiveTable {
  readonly kind: "collective";
  /** The number of the member at position 0; the others follow. */
  readonly firstMember: number;
  /** In team order. */
  readonly operations: readonly Collective[];
  /** One after the other, once all members have arrived. */
  readonly phases: readonly Phase[];
  readonly meeting: number;
}

export interface GroupTable {
  readonly kind: "group";
  readonly firstMember: number;
  readonly operations: readonly PointToPointGroup[];
  readonly edges: readonly EdgeTable[];
  /** edgesOf[position]: indices of the edges that begin or end there. */
  readonly edgesOf: readonly (readonly number[])[];
}

interface EdgeTable extends TransferEdge {
  readonly phases: readonly Phase[];
  readonly meeting: number;
}

export type TransferTable = CollectiveTable | GroupTable;

export interface TransferTables {
  readonly members: readonly Member[];
  /** memberOf[rank].get(command): the member that a transfer command is. */
  readonly memberOf: readonly ReadonlyMap<number, number>[];
  /** Indexed by TransferId. */
  readonly transfers: readonly TransferTable[];
  readonly meetingCount: number;
  /** In order of their numbers. */
  readonly phases: readonly Phase[];
}

/** `queueOf(rank, stream)` is the queue that runs a stream's commands. */
export function createTransferTables(
  program: Program,
  queueOf: (rank: number, stream: number) => number,
): TransferTables {
  const members: Member[] = [];
  const memberOf = program.ranks.map(() => new Map<number, number>());
  let meetingCount = 0;
  const phases: Phase[] = [];
  const numbered = (chains: readonly Chain[]): readonly Phase[] => {
    if (chains.length === 0) return [];
    const phase = { number: phases.length, chains };
    phases.push(phase);
    return [phase];
  };
  const transfers = program.transfers.map((transfer): TransferTable => {
    const firstMember = members.length;
    for (const [position, { rank, command, operation }] of transfer.participants.entries()) {
      at(memberOf, rank).set(command, members.length);
      members.push({
        rank,
        command,
        queue: queueOf(rank, at(at(program.ranks, rank).commands, command).stream),
        transfer: transfer.id,
        position,
        credits: operation.kind === "collective" ? 1 : operation.ops.length,
      });
    }
    const table = tableOf(transfer, firstMember, meetingCount, numbered);
    meetingCount += table.kind === "collective" ? 1 : table.edges.length;
    return table;
  });
  return { members, memberOf, transfers, meetingCount, phases };
}

function tableOf(
  transfer: LinkedTransfer,
  firstMember: number,
  firstMeeting: number,
  numbered: (chains: readonly Chain[]) => readonly Phase[],
): TransferTable {
  if (transfer.kind === "collective") {
    const operations = transfer.participants.map(({ operation }) => {
      invariant(operation.kind === "collective", "the members of a collective are collectives", transfer.id);
      return operation;
    });
    const phases = collectiveChains(operations).flatMap(numbered);
    return { kind: "collective", firstMember, operations, phases, meeting: firstMeeting };
  }
  const operations = transfer.participants.map(({ operation }) => {
    invariant(operation.kind === "group", "the members of a group are groups", transfer.id);
    return operation;
  });
  const edgesOf = operations.map((): number[] => []);
  const edges = transfer.edges.map((edge, index): EdgeTable => {
    const { from, sendOp, to, recvOp } = edge;
    at(edgesOf, from).push(index);
    if (to !== from) at(edgesOf, to).push(index);
    const send = at(at(operations, from).ops, sendOp);
    const recv = at(at(operations, to).ops, recvOp);
    return { ...edge, phases: numbered(copyChains(from, send.view, recv.view)), meeting: firstMeeting + index };
  });
  return { kind: "group", firstMember, operations, edges, edgesOf };
}
