/**
 * Rows with a number for every chain, in pages. Rows share a page until one of them changes it: in a program of many
 * ranks, two chains know nearly the same. A page has about the square root of the chains, so that a row
 * of page numbers takes as little as a page.
 */
import { at, invariant } from "../../support/invariant.ts";

/** What a chain knows. Valid until its next join. */
export interface Known {
  /** The number of nodes of `chain` that have completed. */
  of(chain: number): number;
  all(): Int32Array;
  /** Whether `test` holds for a chain whose numbers differ between this row and another. */
  differs(other: Known, test: (chain: number, own: number, others: number) => boolean): boolean;
  /** By place: the page, as a number of the pool. */
  readonly pages: Int32Array;
}

export interface KnownRows {
  /** All zero. */
  take(): Known;
  copy(row: Known): Known;
  /** The row is not used any more. */
  drop(row: Known): void;
  set(row: Known, chain: number, value: number): void;
  /** Raises every number to the larger of the two. */
  raise(row: Known, by: Known): void;
}

const leastBits = 6;
const pagesPerBlock = 256;
/** All zero, and never written. */
const zero = 0;

export function createKnownRows(chainCount: number): KnownRows {
  const bits = Math.max(leastBits, Math.ceil(Math.log2(chainCount) / 2));
  const length = 2 ** bits;
  const mask = length - 1;
  const pageCount = Math.ceil(chainCount / length);
  const pages: Int32Array[] = [];
  /** The number of rows that use each page. */
  const users: number[] = [];
  const freePages: number[] = [];
  const freeRows: Known[] = [];
  const blocks: Int32Array[] = [];
  const addPage = (): number => {
    const page = pages.length;
    const inBlock = page % pagesPerBlock;
    const block = inBlock === 0 ? new Int32Array(pagesPerBlock * length) : at(blocks, blocks.length - 1);
    if (inBlock === 0) blocks.push(block);
    pages.push(block.subarray(inBlock * length, (inBlock + 1) * length));
    return page;
  };
  const takePage = (): number => {
    const page = freePages.pop() ?? addPage();
    users[page] = 1;
    return page;
  };
  const dropPage = (page: number): void => {
    const left = at(users, page) - 1;
    users[page] = left;
    if (left === 0) freePages.push(page);
  };
  const sharePage = (row: Known, place: number, page: number): void => {
    users[page] = at(users, page) + 1;
    dropPage(at(row.pages, place));
    row.pages[place] = page;
  };
  /** The page at `place`, for this row alone. */
  const ownPage = (row: Known, place: number): Int32Array => {
    const page = at(row.pages, place);
    const data = at(pages, page);
    if (users[page] === 1) return data;
    const own = takePage();
    const copy = at(pages, own);
    copy.set(data);
    dropPage(page);
    row.pages[place] = own;
    return copy;
  };
  const createRow = (): Known => {
    const own = new Int32Array(pageCount);
    const numberOf = (chain: number): number => (pages[own[chain >> bits] ?? 0] ?? none)[chain & mask] ?? 0;
    return {
      pages: own,
      of: numberOf,
      all: () => {
        const numbers = new Int32Array(pageCount * length);
        own.forEach((page, place) => numbers.set(at(pages, page), place * length));
        return numbers.subarray(0, chainCount);
      },
      differs: (other, test) =>
        own.some((page, place) => {
          const theirs = at(other.pages, place);
          if (page === theirs) return false;
          const [a, b] = [at(pages, page), at(pages, theirs)];
          for (let i = 0; i < length; i++) {
            if (a[i] !== b[i] && test(place * length + i, a[i] ?? 0, b[i] ?? 0)) return true;
          }
          return false;
        }),
    };
  };
  const take = (): Known => {
    const row = freeRows.pop() ?? createRow();
    row.pages.fill(zero);
    users[zero] = at(users, zero) + pageCount;
    return row;
  };
  // One more user than rows, so that the page of zeros is never written or freed.
  invariant(takePage() === zero, "the first page is that of zeros");
  return {
    take,
    copy: ({ pages: from }) => {
      const row = freeRows.pop() ?? createRow();
      row.pages.set(from);
      for (let place = 0; place < pageCount; place++) {
        const page = from[place] ?? zero;
        users[page] = (users[page] ?? 0) + 1;
      }
      return row;
    },
    drop: (row) => {
      for (const page of row.pages) dropPage(page);
      freeRows.push(row);
    },
    set: (row, chain, value) => {
      ownPage(row, chain >> bits)[chain & mask] = value;
    },
    raise: (row, by) => {
      for (let place = 0; place < pageCount; place++) {
        const [own, other] = [row.pages[place] ?? zero, by.pages[place] ?? zero];
        if (own === other || other === zero) continue;
        const highest = own === zero ? "other" : comparePages(at(pages, own), at(pages, other));
        if (highest === "other") sharePage(row, place, other);
        if (highest === "neither") raisePage(ownPage(row, place), at(pages, other));
      }
    },
  };
}

const none = new Int32Array(0);

/** Which of the two has the larger number everywhere. */
function comparePages(own: Int32Array, other: Int32Array): "own" | "other" | "neither" {
  // The sign bits of all differences.
  let [ownIsLess, otherIsLess] = [0, 0];
  for (let i = 0; i < own.length; i++) {
    const [a, b] = [own[i] ?? 0, other[i] ?? 0];
    ownIsLess |= a - b;
    otherIsLess |= b - a;
  }
  return otherIsLess < 0 ? (ownIsLess < 0 ? "neither" : "own") : "other";
}

function raisePage(into: Int32Array, by: Int32Array): void {
  for (let i = 0; i < into.length; i++) {
    const value = by[i] ?? 0;
    if (value > (into[i] ?? 0)) into[i] = value;
  }
}

// Clock vectors: for every chain, the number of nodes of each other chain that are known to have completed before its
// next node starts. A chain and its snapshots share a row (known.ts), which is copied only if the chain learns something
// while a snapshot is held. The last reader releases a snapshot, so memory use follows the work in flight.

/** A chain's knowledge at one moment: a row, and the chain's own progress. */
export interface Snapshot {
  readonly row: SharedRow;
  readonly chain: number;
  readonly position: number;
}

export interface SharedRow {
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
  /** What the snapshots know together, for `readers` calls of `learn`. Reads every snapshot once. */
  together(snapshots: readonly Snapshot[], readers: number): SharedRow;
  /** Adds the row to the knowledge of `chain`. */
  learn(chain: number, row: SharedRow): void;
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
  const ownRow = (chain: number): Known => {
    const shared = at(rowOf, chain);
    if (shared.users === 1) return shared.known;
    const own = { known: rows.copy(shared.known), users: 1 };
    drop(shared);
    rowOf[chain] = own;
    return own.known;
  };
  const together: Clocks["together"] = (snapshots, readers) => {
    const known = rows.take();
    for (const { row } of snapshots) rows.raise(known, row.known);
    for (const { row, chain, position } of snapshots) {
      if (position > known.of(chain)) rows.set(known, chain, position);
      drop(row);
    }
    return { known, users: readers };
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
      if (from !== chain && at(rowOf, chain).known.of(from) < position) {
        const known = ownRow(chain);
        rows.raise(known, row.known);
        rows.set(known, from, position);
      }
      drop(row);
    },
    together,
    learn: (chain, row) => {
      rows.raise(ownRow(chain), row.known);
      drop(row);
    },
    unite: (snapshots) => {
      const row = together(snapshots, snapshots.length);
      for (const { chain } of snapshots) {
        drop(at(rowOf, chain));
        rowOf[chain] = row;
      }
    },
    release: ({ row }) => drop(row),
  };
}

// Growing typed arrays, and lists of numbers stored consecutively: the building blocks of the verifier's tables.

type Numbers = Int32Array | Float64Array;

interface NumberList<A extends Numbers> {
  readonly length: number;
  push(value: number): void;
  /** The pushed values, in a new array. */
  toArray(): A;
}

/** A list of 32-bit integers. */
export function createIntList(): NumberList<Int32Array> {
  return createList((length) => new Int32Array(length));
}

/** A list of numbers of any size. */
export function createFloatList(): NumberList<Float64Array> {
  return createList((length) => new Float64Array(length));
}

function createList<A extends Numbers>(make: (length: number) => A): NumberList<A> {
  let values = make(64);
  let length = 0;
  const copied = (size: number): A => {
    const copy = make(size);
    copy.set(values.subarray(0, size));
    return copy;
  };
  return {
    get length() {
      return length;
    },
    push: (value) => {
      if (length === values.length) values = copied(2 * length);
      values[length++] = value;
    },
    toArray: () => copied(length),
  };
}

/** Of row r: values[start[r]] to values[start[r + 1] - 1]. */
export interface ClockRows {
  readonly start: Int32Array;
  readonly values: Int32Array;
}

interface RowsBuilder {
  /** Adds a value to the open row. */
  add(value: number): void;
  /** Ends the open row. */
  close(): void;
  finish(): ClockRows;
}

export function createRows(rowCount: number): RowsBuilder {
  const values = createIntList();
  const start = new Int32Array(rowCount + 1);
  let row = 0;
  return {
    add: (value) => values.push(value),
    close: () => {
      start[++row] = values.length;
    },
    finish: () => ({ start, values: values.toArray() }),
  };
}
