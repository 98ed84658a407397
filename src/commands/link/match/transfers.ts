/** Matches and numbers the transfers of all lists: collectives and point-to-point groups. */
import { getOrMake, makeId, at } from "../../../support/invariant.ts";
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { createUnionFind } from "../../../support/union-find.ts";
import type { CommandList, UnlinkedCommand } from "../../command-list.ts";
import type { Collective, PointToPointGroup, TransferId } from "../../command.ts";
import type { LinkedTransfer, Participant, TransferEdge } from "../../program.ts";
import { relocateCollective, relocateGroup } from "../relocate.ts";
import { matchCollectives, type Posted } from "./collectives.ts";
import { type Meanings, swappedSends } from "./meaning.ts";
import { type End, unmatched, viewMismatch } from "./problems.ts";

export type TransferOperation = Collective | PointToPointGroup;

export interface MatchedTransfers {
  /** Indexed by TransferId; in order of each one's first command, by rank and position. */
  readonly transfers: readonly LinkedTransfer[];
  /** transferOf[rank][command]. */
  readonly transferOf: readonly (readonly (TransferId | null)[])[];
  /** By rank: what each of its transfer commands does, with its buffers numbered over all ranks. */
  readonly operations: readonly ReadonlyMap<UnlinkedCommand, TransferOperation>[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** `bufferBases[rank]` is the id of the rank's buffer 0. */
export function matchTransfers(meanings: Meanings, bufferBases: readonly number[]): MatchedTransfers {
  const { lists } = meanings;
  const collectives: Posted<Collective>[] = [];
  const groups: Posted<PointToPointGroup>[] = [];
  const operations = lists.map(() => new Map<UnlinkedCommand, TransferOperation>());
  for (const [rank, { commands }] of lists.entries()) {
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "transfer") continue;
      const { communicator, operation } = command;
      const posted = { rank, command: index, communicator };
      const base = at(bufferBases, rank);
      const relocated =
        operation.kind === "group" ? relocateGroup(base, operation) : relocateCollective(base, operation);
      if (relocated.kind === "group") groups.push({ ...posted, operation: relocated });
      else collectives.push({ ...posted, operation: relocated });
      at(operations, rank).set(command, relocated);
    }
  }
  const matchedCollectives = matchCollectives(meanings, collectives);
  const matchedGroups = matchGroups(meanings, groups);
  const unnumbered = [
    ...matchedCollectives.matched.map((match) => ({ ...match, kind: "collective" as const })),
    ...matchedGroups.matched.map((match) => ({ ...match, kind: "group" as const })),
  ].sort((a, b) => compare(earliest(a.participants), earliest(b.participants)));
  const transferOf = emptyRows(lists, new Set([...collectives, ...groups].map(({ rank }) => rank)));
  const transfers = unnumbered.map((match, index): LinkedTransfer => {
    const id = makeId<TransferId>(index);
    const participants = match.participants.map(({ rank, command, operation }) => ({ rank, command, operation }));
    for (const { rank, command } of participants) at(transferOf, rank)[command] = id;
    return { ...match, id, participants };
  });
  return {
    transfers,
    transferOf,
    operations,
    problems: [...matchedCollectives.problems, ...matchedGroups.problems],
    warnings: [...matchedCollectives.warnings, ...matchedGroups.warnings],
  };
}

/** A row of nulls for each list. Lists without transfers, and of one length, share one. */
function emptyRows(
  lists: readonly CommandList[],
  withTransfers: ReadonlySet<number>,
): readonly (TransferId | null)[][] {
  const shared = new Map<number, (TransferId | null)[]>();
  return lists.map(({ commands }, rank) => {
    const known = shared.get(commands.length);
    if (known !== undefined && !withTransfers.has(rank)) return known;
    const row = commands.map(() => null);
    if (!withTransfers.has(rank)) shared.set(commands.length, row);
    return row;
  });
}

function earliest(participants: readonly Participant[]): Participant {
  return participants.reduce((first, each) => (compare(each, first) < 0 ? each : first));
}

function compare(a: Participant, b: Participant): number {
  return a.rank - b.rank || a.command - b.command;
}

// Matches sends with receives: on each communicator the k-th send from s to d belongs to the k-th recv on d from s.
// Groups that exchange with each other, directly or through others, become one transfer.

interface MatchedGroups {
  readonly communicator: string;
  /** In order of ranks and of their lists. */
  readonly participants: readonly Participant[];
  readonly edges: readonly TransferEdge[];
}

/** An op by its number, counted over all posted groups. */
interface Ops {
  /** By group: the number of its first op, and one more entry at the end. */
  readonly first: Int32Array;
  /** By op. */
  readonly groupOf: Int32Array;
}

/** The ops from one rank to another on one communicator: the first of each side by number, -1 for none. */
interface Channel {
  readonly from: number;
  readonly to: number;
  readonly communicator: string;
  send: number;
  recv: number;
}

/** The k-th send belongs to the k-th recv, as numbers of ops. */
interface Pairs {
  readonly sends: number[];
  readonly recvs: number[];
}

/** `posted` is in order of ranks and, for each rank, of its list. */
function matchGroups(
  meanings: Meanings,
  posted: readonly Posted<PointToPointGroup>[],
): {
  readonly matched: readonly MatchedGroups[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
} {
  const { lists } = meanings;
  const ops = numberOps(posted);
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const pairs: Pairs = { sends: [], recvs: [] };
  const { channels, next } = channelsOf(posted, ops, lists.length);
  const ends = (first: number): readonly End[] => {
    const found: End[] = [];
    for (let op = first; op >= 0; op = at(next, op)) found.push(endOf(posted, ops, op));
    return found;
  };
  for (const { from, to, communicator, ...first } of channels) {
    let { send, recv } = first;
    for (; send >= 0 && recv >= 0; [send, recv] = [at(next, send), at(next, recv)]) {
      const problem = viewMismatch(lists, endOf(posted, ops, send), endOf(posted, ops, recv));
      if (problem === null) {
        pairs.sends.push(send);
        pairs.recvs.push(recv);
      } else problems.push(problem);
    }
    const [sends, recvs] = [() => ends(first.send), () => ends(first.recv)];
    if (send !== recv)
      problems.push(unmatched(lists, { from, to, sends: sends(), recvs: recvs(), channel: communicator }));
    if ((next[first.send] ?? -1) >= 0) warnings.push(...swappedSends(meanings, sends(), recvs()));
  }
  return { matched: joinGroups(posted, ops, pairs), problems, warnings };
}

function numberOps(posted: readonly Posted<PointToPointGroup>[]): Ops {
  const first = new Int32Array(posted.length + 1);
  for (const [group, { operation }] of posted.entries()) first[group + 1] = at(first, group) + operation.ops.length;
  const groupOf = new Int32Array(at(first, posted.length));
  for (const group of posted.keys()) groupOf.fill(group, at(first, group), at(first, group + 1));
  return { first, groupOf };
}

/**
 * In the order of each one's first op. A program of uneven shares has a channel for any two ranks, so no list is made of
 * their ops: `next` has by op the next one of its side of the channel, -1 after the last.
 */
function channelsOf(
  posted: readonly Posted<PointToPointGroup>[],
  { first, groupOf }: Ops,
  rankCount: number,
): { readonly channels: readonly Channel[]; readonly next: Int32Array } {
  const channels: Channel[] = [];
  const numbersOf = new Map<string, NumberOf>();
  const opsOf = new Map<string, number>();
  for (const { communicator, operation } of posted)
    opsOf.set(communicator, (opsOf.get(communicator) ?? 0) + operation.ops.length);
  /** By channel: the last op so far of each side. */
  const lasts: Readonly<Record<"send" | "recv", number[]>> = { send: [], recv: [] };
  const next = new Int32Array(groupOf.length).fill(-1);
  for (const [group, { rank, communicator, operation }] of posted.entries()) {
    const numberOf = getOrMake(numbersOf, communicator, () => numbering(rankCount, opsOf.get(communicator) ?? 0));
    const begin = at(first, group);
    for (const [i, { type, peer }] of operation.ops.entries()) {
      const op = begin + i;
      const [from, to] = type === "send" ? [rank, peer] : [peer, rank];
      const channel = numberOf(from, to, channels.length);
      if (channel === channels.length) channels.push({ from, to, communicator, send: -1, recv: -1 });
      const last = lasts[type][channel];
      if (last === undefined) at(channels, channel)[type] = op;
      else next[last] = op;
      lasts[type][channel] = op;
    }
  }
  return { channels, next };
}

/** The number of two ranks, which is `next` if they have none yet. */
type NumberOf = (from: number, to: number, next: number) => number;

/** A peer that is no rank of the run is reported once all channels are known: until then it has one, too. */
function numbering(rankCount: number, ops: number): NumberOf {
  const numberOf = numberingOfRanks(rankCount, ops);
  const others = new Map<string, number>();
  const isRank = (rank: number): boolean => rank >= 0 && rank < rankCount;
  return (from, to, next) =>
    isRank(from) && isRank(to) ? numberOf(from, to, next) : getOrMake(others, `${from} ${to}`, () => next);
}

/** In a table where there are as many ops as pairs of ranks, else in a map. */
function numberingOfRanks(rankCount: number, ops: number): NumberOf {
  if (ops >= rankCount * rankCount) {
    const table = new Int32Array(rankCount * rankCount).fill(-1);
    return (from, to, next) => {
      const place = from * rankCount + to;
      const known = at(table, place);
      if (known >= 0) return known;
      table[place] = next;
      return next;
    };
  }
  const numbers = new Map<number, number>();
  return (from, to, next) => getOrMake(numbers, from * rankCount + to, () => next);
}

function endOf(posted: readonly Posted<PointToPointGroup>[], { first, groupOf }: Ops, op: number): End {
  const group = at(groupOf, op);
  const { rank, command, operation } = at(posted, group);
  return { rank, command, view: at(operation.ops, op - at(first, group)).view };
}

function joinGroups(
  posted: readonly Posted<PointToPointGroup>[],
  { first, groupOf }: Ops,
  { sends, recvs }: Pairs,
): readonly MatchedGroups[] {
  const sets = createUnionFind(posted.length);
  for (const [k, send] of sends.entries()) sets.union(at(groupOf, send), at(groupOf, at(recvs, k)));
  const joined = new Map<number, { communicator: string; participants: Participant[]; edges: TransferEdge[] }>();
  // positionOf[group]: its place among the participants of its transfer.
  const positionOf: number[] = [];
  for (const [group, { rank, command, communicator, operation }] of posted.entries()) {
    const root = sets.find(group);
    const transfer = getOrMake(joined, root, () => ({ communicator, participants: [], edges: [] }));
    positionOf.push(transfer.participants.length);
    transfer.participants.push({ rank, command, operation });
  }
  for (const [k, send] of sends.entries()) {
    const recv = at(recvs, k);
    const [from, to] = [at(groupOf, send), at(groupOf, recv)];
    joined.get(sets.find(from))?.edges.push({
      from: at(positionOf, from),
      sendOp: send - at(first, from),
      to: at(positionOf, to),
      recvOp: recv - at(first, to),
    });
  }
  return [...joined.values()];
}
