/**
 * Matches sends with receives: on each communicator the k-th send from s to d belongs to the k-th recv on d from s.
 * Groups that exchange with each other, directly or through others, become one transfer.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { createUnionFind } from "../../../support/union-find.ts";
import type { TransferEdge, Participant } from "../../program.ts";
import type { PointToPointGroup } from "../../transfer.ts";
import type { Posted } from "./collectives.ts";
import { type Meanings, swappedSends } from "./meaning.ts";
import { type End, unmatched, viewMismatch } from "./point-to-point-problems.ts";
import type { CommandRef } from "./problems.ts";

export interface MatchedGroups {
  readonly communicator: string;
  /** In order of ranks and of their lists. */
  readonly participants: readonly Participant[];
  readonly edges: readonly TransferEdge[];
}

/** An op of a posted group: `posted[group].operation.ops[op]`. */
interface OpRef {
  readonly group: number;
  readonly op: number;
}

/** The ops from one rank to another on one communicator, each side in order. */
interface Channel {
  readonly from: number;
  readonly to: number;
  readonly communicator: string;
  readonly sends: OpRef[];
  readonly recvs: OpRef[];
}

/** `posted` is in order of ranks and, for each rank, of its list. */
export function matchGroups(
  meanings: Meanings,
  posted: readonly Posted<PointToPointGroup>[],
): {
  readonly matched: readonly MatchedGroups[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
} {
  const { lists } = meanings;
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const pairs: { readonly send: OpRef; readonly recv: OpRef }[] = [];
  for (const channel of channelsOf(posted)) {
    for (const [k, send] of channel.sends.entries()) {
      const recv = channel.recvs[k];
      if (recv === undefined) break;
      const problem = viewMismatch(lists, endOf(posted, send), endOf(posted, recv));
      if (problem === null) pairs.push({ send, recv });
      else problems.push(problem);
    }
    if (channel.sends.length !== channel.recvs.length) {
      const refs = (ops: readonly OpRef[]): readonly CommandRef[] => ops.map(({ group }) => at(posted, group));
      const { from, to, sends, recvs, communicator } = channel;
      problems.push(unmatched(lists, { from, to, sends: refs(sends), recvs: refs(recvs), channel: communicator }));
    }
    const ends = (ops: readonly OpRef[]): readonly End[] => ops.map((op) => endOf(posted, op));
    warnings.push(...swappedSends(meanings, ends(channel.sends), ends(channel.recvs)));
  }
  return { matched: joinGroups(posted, pairs), problems, warnings };
}

function channelsOf(posted: readonly Posted<PointToPointGroup>[]): Iterable<Channel> {
  const channels = new Map<string, Channel>();
  // The name of a communicator lists its ranks: too long a key to make for every transfer.
  const communicators = new Map<string, number>();
  for (const [group, { rank, communicator, operation }] of posted.entries()) {
    const number = communicators.get(communicator) ?? communicators.size;
    communicators.set(communicator, number);
    for (const [op, { type, peer }] of operation.ops.entries()) {
      const [from, to] = type === "send" ? [rank, peer] : [peer, rank];
      const key = `${from} ${to} ${number}`;
      const channel = channels.get(key) ?? { from, to, communicator, sends: [], recvs: [] };
      channels.set(key, channel);
      (type === "send" ? channel.sends : channel.recvs).push({ group, op });
    }
  }
  return channels.values();
}

function endOf(posted: readonly Posted<PointToPointGroup>[], { group, op }: OpRef): End {
  const { rank, command, operation } = at(posted, group);
  return { rank, command, view: at(operation.ops, op).view };
}

function joinGroups(
  posted: readonly Posted<PointToPointGroup>[],
  pairs: readonly { readonly send: OpRef; readonly recv: OpRef }[],
): readonly MatchedGroups[] {
  const sets = createUnionFind(posted.length);
  for (const { send, recv } of pairs) sets.union(send.group, recv.group);
  const joined = new Map<number, { communicator: string; participants: Participant[]; edges: TransferEdge[] }>();
  // positionOf[group]: its place among the participants of its transfer.
  const positionOf: number[] = [];
  for (const [group, { rank, command, communicator, operation }] of posted.entries()) {
    const root = sets.find(group);
    const transfer = joined.get(root) ?? { communicator, participants: [], edges: [] };
    joined.set(root, transfer);
    positionOf.push(transfer.participants.length);
    transfer.participants.push({ rank, command, operation });
  }
  for (const { send, recv } of pairs) {
    joined.get(sets.find(send.group))?.edges.push({
      from: at(positionOf, send.group),
      sendOp: send.op,
      to: at(positionOf, recv.group),
      recvOp: recv.op,
    });
  }
  return [...joined.values()];
}
