/**
 * Which ranks take part in a transfer, and what each of their records says of it. Collectives of a group meet by number.
 * Sends and recvs between two ranks of a group meet in order: their numbers count on each rank alone.
 */
import { needsAll } from "./collective-rows.ts";
import type { Issued, TorchGroup, TorchRank } from "./issued.ts";
import type { TorchEntry } from "./torch-record.ts";
import { getOrMake } from "../../support/invariant.ts";

/** What the record of another rank says of a transfer. */
export type Peer =
  | { readonly kind: "issued"; readonly rank: number; readonly issued: Issued; readonly op: TorchEntry }
  | { readonly kind: "not issued"; readonly rank: number }
  /** The rank has no record. */
  | { readonly kind: "absent"; readonly rank: number }
  /** The record has forgotten the transfer, or is older than that of a rank on which it completed. */
  | { readonly kind: "unknown"; readonly rank: number };

export interface GroupCollectives {
  readonly group: TorchGroup;
  /** By number, then by rank. */
  readonly byNumber: ReadonlyMap<number, ReadonlyMap<number, Issued>>;
  /** The last number of each rank that has a record; null if it has forgotten all. */
  readonly lastOf: ReadonlyMap<number, number | null>;
}

export interface Transfers {
  readonly ranks: ReadonlyMap<number, TorchRank>;
  readonly groups: readonly GroupCollectives[];
  /** All others that take part. */
  readonly peersOf: (issued: Issued) => readonly Peer[];
  /** Ranks whose records are older than those of others. */
  readonly stale: ReadonlySet<number>;
}

/** `alikeUpTo`: the number of a group from which on its ranks disagree; Infinity where they do not. */
export function transfersOf(
  ranks: ReadonlyMap<number, TorchRank>,
  groups: readonly GroupCollectives[],
  alikeUpTo: (group: TorchGroup) => number,
): Transfers {
  const byGroup = new Map(groups.map((each) => [each.group, each]));
  const matchOf = pointToPoints(ranks);
  const stale = new Set<number>();
  for (const { group, byNumber, lastOf } of groups)
    for (const [number, of] of byNumber) {
      if (number >= alikeUpTo(group)) break;
      const isDone = [...of.values()].some(({ last, ops }) => last.state === "completed" && ops.every(needsAll));
      if (isDone) for (const [rank, end] of lastOf) if (end !== null && end < number) stale.add(rank);
    }
  const peersOf = (issued: Issued): readonly Peer[] => {
    if (issued.isPointToPoint) return issued.ops.flatMap((op) => (op.peers === null ? [] : [matchOf(issued, op)]));
    const all = byGroup.get(issued.group);
    const of = all?.byNumber.get(issued.number);
    return issued.group.ranks
      .filter((rank) => rank !== issued.record.rank)
      .map((rank): Peer => {
        const other = of?.get(rank);
        if (other !== undefined) return { kind: "issued", rank, issued: other, op: other.last };
        if (!ranks.has(rank)) return { kind: "absent", rank };
        const end = all?.lastOf.get(rank) ?? null;
        return { kind: end === null || end > issued.number || stale.has(rank) ? "unknown" : "not issued", rank };
      });
  };
  return { ranks, groups, peersOf, stale };
}

export function collectivesOf(ranks: ReadonlyMap<number, TorchRank>): readonly GroupCollectives[] {
  const found = new Map<TorchGroup, Map<number, Map<number, Issued>>>();
  for (const [rank, { issued }] of ranks)
    for (const each of issued) {
      const byNumber = getOrMake(found, each.group, () => new Map<number, Map<number, Issued>>());
      if (each.isPointToPoint) continue;
      const of = byNumber.get(each.number) ?? new Map<number, Issued>();
      byNumber.set(each.number, of.set(rank, each));
    }
  return [...found].map(([group, byNumber]) => {
    const ends = new Map<number, number>();
    for (const [number, of] of byNumber)
      for (const rank of of.keys()) ends.set(rank, Math.max(number, ends.get(rank) ?? 0));
    const lastOf = new Map(
      group.ranks.flatMap((rank) => {
        const known = ranks.get(rank);
        return known === undefined ? [] : [[rank, ends.get(rank) ?? (known.isWhole ? 0 : null)] as const];
      }),
    );
    return { group, byNumber: new Map([...byNumber].toSorted(([a], [b]) => a - b)), lastOf };
  });
}

interface End {
  readonly issued: Issued;
  readonly op: TorchEntry;
}

/** From one rank to another in a group, in order. */
interface Channel {
  readonly sends: End[];
  readonly recvs: End[];
}

function pointToPoints(ranks: ReadonlyMap<number, TorchRank>): (issued: Issued, op: TorchEntry) => Peer {
  const channels = new Map<string, Channel>();
  const channelOf = ({ group }: Issued, { peers }: TorchEntry): Channel => {
    const key = `${group.key}: ${peers?.source} ${peers?.destination}`;
    const channel = getOrMake(channels, key, () => ({ sends: [], recvs: [] }));
    return channel;
  };
  const places = new Map<TorchEntry, number>();
  for (const { issued } of ranks.values())
    for (const each of issued)
      for (const op of each.ops) {
        if (op.peers === null) continue;
        const { sends, recvs } = channelOf(each, op);
        const ends = op.op === "send" ? sends : recvs;
        places.set(op, ends.length);
        ends.push({ issued: each, op });
      }
  return (issued, op) => {
    const { sends, recvs } = channelOf(issued, op);
    const isSend = op.op === "send";
    const [own, others] = isSend ? [sends, recvs] : [recvs, sends];
    const position = isSend ? op.peers?.destination : op.peers?.source;
    const rank = issued.group.ranks[position ?? 0];
    // The members of a group that no record lists are guessed.
    if (rank === undefined) return { kind: "unknown", rank: issued.record.rank };
    const other = ranks.get(rank);
    if (other === undefined) return { kind: "absent", rank };
    const areWhole = other.isWhole && ranks.get(issued.record.rank)?.isWhole === true;
    // Records that have forgotten their beginnings are laid side by side where they are unfinished.
    const shift = areWhole ? 0 : firstOpen(others) - firstOpen(own);
    const place = (places.get(op) ?? 0) + shift;
    const end = others[place];
    if (end !== undefined) return { kind: "issued", rank, ...end };
    return { kind: place < 0 ? "unknown" : "not issued", rank };
  };
}

function firstOpen(ends: readonly End[]): number {
  const found = ends.findIndex(({ issued }) => issued.last.state !== "completed");
  return found < 0 ? ends.length : found;
}

/** The ranks with a record that have issued a collective of a group. */
export function sidesOf({ byNumber }: GroupCollectives, number: number): readonly Issued[] {
  return [...(byNumber.get(number)?.values() ?? [])].toSorted((a, b) => a.record.rank - b.record.rank);
}
