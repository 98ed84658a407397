/**
 * Clock vectors: for every chain, the number of nodes of each other chain that are known to have completed before its
 * next node starts. A vector is a row of a pool. A chain and its snapshots share a row, which is copied only if the
 * chain learns something while a snapshot is held. The last reader releases a snapshot, so memory use follows the work
 * in flight.
 */
import { at, invariant } from "../../support/invariant.ts";

/** A chain's knowledge at one moment: a row, and the chain's own progress. */
export interface Snapshot {
  readonly row: number;
  readonly chain: number;
  readonly position: number;
}

export interface Clocks {
  /** Whether the node at `position` of `of` has completed before the next node of `chain`. */
  knows(chain: number, of: number, position: number): boolean;
  /** The row with the chain's knowledge, for loops that read it often. Valid until the next join. */
  view(chain: number): Int32Array;
  /** `readers` calls of `join` or `release` must follow. */
  snapshot(chain: number, position: number, readers: number): Snapshot;
  /** The snapshot's knowledge of other chains. It knows its own chain by its position. */
  rowOf(snapshot: Snapshot): Int32Array;
  /** Adds the snapshot's knowledge to that of `chain`. */
  join(chain: number, snapshot: Snapshot): void;
  /** Gives each chain of the snapshots the knowledge of all of them. Reads every snapshot once. */
  unite(snapshots: readonly Snapshot[]): void;
  /** Removes one reader. */
  release(snapshot: Snapshot): void;
  /** The largest number of rows in use at once. */
  readonly peak: number;
}

const rowsPerPage = 256;

export function createClocks(chainCount: number): Clocks {
  const pages: Int32Array[] = [];
  const free: number[] = [];
  /** The number of chains and snapshots that use each row. */
  const users: number[] = [];
  const rows: Int32Array[] = [];
  const rowOf = new Int32Array(chainCount);
  let peak = 0;
  const take = (): number => {
    const row = free.pop() ?? addRow();
    peak = Math.max(peak, rows.length - free.length);
    users[row] = 1;
    return row;
  };
  const addRow = (): number => {
    const row = rows.length;
    if (row % rowsPerPage === 0) pages.push(new Int32Array(rowsPerPage * chainCount));
    const page = at(pages, pages.length - 1);
    const begin = (row % rowsPerPage) * chainCount;
    rows.push(page.subarray(begin, begin + chainCount));
    return row;
  };
  const drop = (row: number, count: number): void => {
    const left = at(users, row) - count;
    invariant(left >= 0, "a snapshot is read as often as was said", { row });
    users[row] = left;
    if (left === 0) free.push(row);
  };
  for (let chain = 0; chain < chainCount; chain++) rowOf[chain] = take();
  const view = (chain: number): Int32Array => at(rows, at(rowOf, chain));
  return {
    knows: (chain, of, position) => chain === of || at(view(chain), of) >= position,
    view,
    snapshot: (chain, position, readers) => {
      const row = at(rowOf, chain);
      users[row] = at(users, row) + readers;
      return { row, chain, position };
    },
    rowOf: ({ row }) => at(rows, row),
    join: (chain, { row, chain: from, position }) => {
      const known = at(rowOf, chain);
      if (from === chain || at(at(rows, known), from) >= position) {
        drop(row, 1);
        return;
      }
      let target = known;
      if (at(users, known) > 1) {
        target = take();
        at(rows, target).set(at(rows, known));
        drop(known, 1);
        rowOf[chain] = target;
      }
      const into = at(rows, target);
      raise(into, at(rows, row));
      into[from] = position;
      drop(row, 1);
    },
    unite: (snapshots) => {
      const target = take();
      const into = at(rows, target);
      into.fill(0);
      for (const { row } of snapshots) raise(into, at(rows, row));
      for (const { row, chain, position } of snapshots) {
        into[chain] = Math.max(into[chain] ?? 0, position);
        drop(row, 1);
        drop(at(rowOf, chain), 1);
        rowOf[chain] = target;
      }
      users[target] = snapshots.length;
    },
    release: ({ row }) => drop(row, 1),
    get peak() {
      return peak;
    },
  };
}

/** Raises every entry to the larger of the two. */
function raise(into: Int32Array, by: Int32Array): void {
  for (let i = 0; i < into.length; i++) {
    const value = by[i] ?? 0;
    if (value > (into[i] ?? 0)) into[i] = value;
  }
}
