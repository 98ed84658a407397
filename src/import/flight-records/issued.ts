/**
 * What each rank has issued: transfers by process group and number. The entries of a batch (`batch_isend_irecv`, the
 * coalescing manager) share a number, and the last of them stands for the batch.
 */
import { at, getOrMake, pushTo } from "../../support/invariant.ts";
import type { GroupConfig, TorchEntry, TorchRecord } from "./torch-record.ts";

export interface TorchGroup {
  /** The same on all ranks: groups of a split have one name and other ranks. */
  readonly key: string;
  readonly name: string;
  readonly description: string;
  /** In the group's order. */
  readonly ranks: readonly number[];
}

/** A collective, a send or recv, or a batch of them, as one rank has issued it. */
export interface Issued {
  readonly record: TorchRecord;
  readonly group: TorchGroup;
  readonly isPointToPoint: boolean;
  readonly number: number;
  /** Of a batch all but the entry that closes it, if they are recorded. */
  readonly ops: readonly TorchEntry[];
  /** The entry whose state is that of the whole. */
  readonly last: TorchEntry;
  /** Transfers of one queue run one after the other. */
  readonly queue: string;
  /** Position among all that the rank has issued. */
  readonly index: number;
}

/** What is known of a rank that takes part in the run. */
export interface TorchRank {
  readonly record: TorchRecord;
  readonly issued: readonly Issued[];
  /** The oldest unfinished transfer of each queue, oldest first. */
  readonly open: readonly Issued[];
  /** Whether the record goes back to the rank's first transfer. */
  readonly isWhole: boolean;
  /** Whether the record tells started transfers from scheduled ones. */
  readonly hasStarts: boolean;
}

export type GroupsByRank = (rank: number, entry: TorchEntry) => TorchGroup;

export function rankOfRecord(record: TorchRecord, groupOf: GroupsByRank): TorchRank {
  const found = new Map<string, TorchEntry[]>();
  const entries = record.entries.toSorted((a, b) => a.id - b.id);
  for (const entry of entries) {
    const { group, isPointToPoint, number } = entry;
    const key = `${isPointToPoint} ${number} ${group}`;
    pushTo(found, key, entry);
  }
  const issued = [...found.values()].map((all, index): Issued => {
    const [first, last] = [at(all, 0), at(all, all.length - 1)];
    const group = groupOf(record.rank, first);
    const { isPointToPoint, number, peers } = first;
    // A send or recv outside of a batch has a communicator of its two ranks.
    const pair = peers === null || all.length > 1 ? [] : [peers.source, peers.destination].toSorted((a, b) => a - b);
    return {
      record,
      group,
      isPointToPoint,
      number,
      ops: all.length > 1 && last.op.endsWith("coalesced") ? all.slice(0, -1) : all,
      last,
      queue: [group.key, ...pair].join(" "),
      index,
    };
  });
  const open = new Map<string, Issued>();
  for (const each of issued) if (each.last.state !== "completed" && !open.has(each.queue)) open.set(each.queue, each);
  return {
    record,
    issued,
    open: [...open.values()],
    isWhole: entries.every(({ id }, i) => id === i),
    hasStarts: entries.some(({ hasStart }) => hasStart),
  };
}

/** The process groups of a run, by the rank that uses one and its name. */
export function groupsByRank(records: readonly TorchRecord[]): GroupsByRank {
  const known = new Map<string, TorchGroup>();
  const shared = (name: string, { description, ranks }: GroupConfig): TorchGroup => {
    const key = `${name} ${ranks.join(" ")}`;
    const first = getOrMake(known, key, () => ({ key, name, description, ranks }));
    return first;
  };
  const byRank = new Map<string, TorchGroup>();
  for (const { rank: own, groups } of records)
    for (const [name, config] of groups) {
      const group = shared(name, config);
      if (!byRank.has(`${own} ${name}`))
        for (const rank of group.ranks) if (!byRank.has(`${rank} ${name}`)) byRank.set(`${rank} ${name}`, group);
      if (group.ranks.includes(own)) byRank.set(`${own} ${name}`, group);
    }
  // A group that no record lists has at least the ranks that use it.
  const users = new Map<string, number[]>();
  for (const { rank, entries } of records)
    for (const name of new Set(entries.map(({ group }) => group)))
      if (!byRank.has(`${rank} ${name}`)) users.set(name, [...(users.get(name) ?? []), rank]);
  return (rank, { group: name, description }) =>
    byRank.get(`${rank} ${name}`) ??
    shared(name, { description, ranks: users.get(name)?.toSorted((a, b) => a - b) ?? [rank] });
}
