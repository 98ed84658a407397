/**
 * Clock vectors: for every chain, the number of nodes of each other chain that are known to have completed before its
 * next node starts. A chain and its snapshots share a row (known.ts), which is copied only if the chain learns something
 * while a snapshot is held. The last reader releases a snapshot, so memory use follows the work in flight.
 */
import { at, invariant } from "../../support/invariant.ts";
import { createKnownRows, type Known } from "./known.ts";

/** A chain's knowledge at one moment: a row, and the chain's own progress. */
export interface Snapshot {
  readonly row: SharedRow;
  readonly chain: number;
  readonly position: number;
}

interface SharedRow {
  readonly known: Known;
  /** The number of chains and snapshots that use it. */
  users: number;
}

export interface Clocks {
  /** Whether the node at `position` of `of` has completed before the next node of `chain`. */
  knows(chain: number, of: number, position: number): boolean;
  /** The chain's knowledge of other chains. Valid until the next join. */
  view(chain: number): Known;
  /** `readers` calls of `join` or `release` must follow. */
  snapshot(chain: number, position: number, readers: number): Snapshot;
  /** Adds the snapshot's knowledge to that of `chain`. */
  join(chain: number, snapshot: Snapshot): void;
  /** Gives each chain of the snapshots the knowledge of all of them. Reads every snapshot once. */
  unite(snapshots: readonly Snapshot[]): void;
  /** Removes one reader. */
  release(snapshot: Snapshot): void;
}

export function createClocks(chainCount: number): Clocks {
  const rows = createKnownRows(chainCount);
  const nothing: SharedRow = { known: rows.take(), users: chainCount };
  const rowOf = Array.from({ length: chainCount }, () => nothing);
  const drop = (row: SharedRow): void => {
    invariant(row.users > 0, "a snapshot is read as often as was said");
    row.users--;
    if (row.users === 0) rows.drop(row.known);
  };
  return {
    knows: (chain, of, position) => chain === of || at(rowOf, chain).known.of(of) >= position,
    view: (chain) => at(rowOf, chain).known,
    snapshot: (chain, position, readers) => {
      const row = at(rowOf, chain);
      row.users += readers;
      return { row, chain, position };
    },
    join: (chain, { row, chain: from, position }) => {
      let target = at(rowOf, chain);
      if (from !== chain && target.known.of(from) < position) {
        if (target.users > 1) {
          const shared = target;
          target = { known: rows.copy(shared.known), users: 1 };
          drop(shared);
          rowOf[chain] = target;
        }
        rows.raise(target.known, row.known);
        rows.set(target.known, from, position);
      }
      drop(row);
    },
    unite: (snapshots) => {
      const known = rows.take();
      const target: SharedRow = { known, users: snapshots.length };
      for (const { row } of snapshots) rows.raise(known, row.known);
      for (const { row, chain, position } of snapshots) {
        if (position > known.of(chain)) rows.set(known, chain, position);
        drop(row);
        drop(at(rowOf, chain));
        rowOf[chain] = target;
      }
    },
    release: ({ row }) => drop(row),
  };
}
