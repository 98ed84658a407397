/**
 * Finds races (conflicts): keeps the last access of each region per chain. That is enough to find whether any earlier
 * access conflicts with the next one, because earlier accesses of a chain happen before its last. Two accesses conflict
 * if their regions share bytes, at least one writes, and neither happens before the other.
 */
import { at } from "../../support/invariant.ts";
import type { Known as KnownRow } from "../order/known.ts";
import type { RegionTable } from "./region-table.ts";

type Known = Pick<KnownRow, "of">;

/** A node of a run, and how it touched a region. */
export interface MemoryAccess {
  /** The node's number, plus the node count in the second run. */
  readonly visit: number;
  readonly region: number;
  readonly writes: boolean;
}

/** The sweep reached `first` earlier, but neither is ordered before the other. */
export interface Conflict {
  readonly first: MemoryAccess;
  readonly second: MemoryAccess;
}

export interface Races {
  /**
   * Compares the accesses of `node` (of one run) with earlier ones, and records them. `known` has the number of each
   * other chain's nodes that happen before; `position` is the node's own in its chain, `visit` its number over
   * both runs.
   */
  touch(node: number, visit: number, chain: number, position: number, known: Known): void;
  /**
   * Compares an alloc with all accesses of another buffer that had its bytes before. `region` is the alloc's region,
   * `whole` is the region of all bytes of the other buffer.
   */
  moveIn(region: number, whole: number, visit: number, chain: number, known: Known): void;
  readonly conflicts: readonly Conflict[];
}

/** The search stops after this many conflicts, because further ones repeat the same mistakes. */
const mostConflicts = 10_000;

export function createRaces({ regions, overlaps, reads, writes }: RegionTable): Races {
  const lastReads = createLasts(regions.length);
  const lastWrites = createLasts(regions.length);
  const conflicts: Conflict[] = [];
  const { start, values } = overlaps;
  /** Compares `second` with the last accesses of the regions that share bytes with `place`. */
  const compareWith = (
    lasts: Lasts,
    writes: boolean,
    place: number,
    second: MemoryAccess,
    chain: number,
    known: Known,
  ): void => {
    const end = at(start, place + 1);
    for (let i = at(start, place); i < end; i++) {
      const other = values[i] ?? 0;
      for (let entry = lasts.first(other); entry >= 0; entry = lasts.next(entry)) {
        if (lasts.isKnown(entry, chain, known)) continue;
        conflicts.push({ first: { visit: lasts.visit(entry), region: other, writes }, second });
      }
    }
  };
  return {
    conflicts,
    moveIn: (region, whole, visit, chain, known) => {
      if (conflicts.length >= mostConflicts) return;
      const second = { visit, region, writes: true };
      compareWith(lastWrites, true, whole, second, chain, known);
      compareWith(lastReads, false, whole, second, chain, known);
    },
    touch: (node, visit, chain, position, known) => {
      if (conflicts.length >= mostConflicts) return;
      const compare = (lasts: Lasts, writes: boolean, region: number, writing: boolean): void =>
        compareWith(lasts, writes, region, { visit, region, writes: writing }, chain, known);
      const [firstRead, endRead] = [at(reads.start, node), at(reads.start, node + 1)];
      const [firstWrite, endWrite] = [at(writes.start, node), at(writes.start, node + 1)];
      for (let i = firstRead; i < endRead; i++) compare(lastWrites, true, reads.values[i] ?? 0, false);
      for (let i = firstWrite; i < endWrite; i++) {
        const region = writes.values[i] ?? 0;
        compare(lastWrites, true, region, true);
        compare(lastReads, false, region, true);
      }
      for (let i = firstRead; i < endRead; i++) lastReads.note(reads.values[i] ?? 0, chain, position, visit);
      for (let i = firstWrite; i < endWrite; i++) lastWrites.note(writes.values[i] ?? 0, chain, position, visit);
    },
  };
}

/** Per region, the last visit of each chain that touched it, as entries in a list. -1 ends a list. */
interface Lasts {
  note(region: number, chain: number, position: number, visit: number): void;
  first(region: number): number;
  next(entry: number): number;
  visit(entry: number): number;
  /** Whether the entry happens before the next node of `chain`, whose clock is `known`. */
  isKnown(entry: number, chain: number, known: Known): boolean;
}

/** An entry: its chain, position and visit, and the next entry of the region. */
const entrySize = 4;

function createLasts(regionCount: number): Lasts {
  const head = new Int32Array(regionCount).fill(-1);
  let entries = new Int32Array(entrySize * Math.max(64, regionCount));
  let end = 0;
  return {
    note: (region, chain, position, visit) => {
      let entry = head[region] ?? -1;
      while (entry >= 0 && entries[entry] !== chain) entry = entries[entry + 3] ?? -1;
      if (entry < 0) {
        if (end === entries.length) {
          const larger = new Int32Array(2 * end);
          larger.set(entries);
          entries = larger;
        }
        entry = end;
        end += entrySize;
        entries[entry] = chain;
        entries[entry + 3] = head[region] ?? -1;
        head[region] = entry;
      }
      entries[entry + 1] = position;
      entries[entry + 2] = visit;
    },
    first: (region) => head[region] ?? -1,
    next: (entry) => entries[entry + 3] ?? -1,
    visit: (entry) => entries[entry + 2] ?? 0,
    isKnown: (entry, chain, known) => {
      const other = entries[entry] ?? 0;
      return other === chain || known.of(other) >= (entries[entry + 1] ?? 0);
    },
  };
}
