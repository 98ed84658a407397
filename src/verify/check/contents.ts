/**
 * The contents of memory over one run, in the order of the sweep: which buffers are alive, and which regions have been
 * written since their buffer was last undefined (at the start of the run, by alloc and by free). If accesses race, the
 * order of the sweep is one of several; verify drops problems that follow from a race it reports.
 */
import type { Program } from "../../commands/program.ts";
import { at, countWhile } from "../../support/invariant.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import { arenaOf, sharingBuffers, type RegionTable } from "./region-table.ts";
import { findGap, type Gap } from "./coverage.ts";

// The buffer that last had each byte of an arena, if several buffers use it at different times. An alloc is compared
// only with the previous buffers of its bytes. Each buffer follows the one before it, so all of them are in order.

interface Tenants {
  /** The buffer is allocated. Returns the buffers that had some of its bytes before, in no order. */
  moveIn(buffer: number): readonly number[];
}

interface Range {
  readonly start: number;
  readonly end: number;
  readonly buffer: number;
}

const none: readonly number[] = [];

/** Buffers that are never `allocated` have their bytes from the start. `some`: those of the ranks that are asked for. */
export function createTenants({ buffers }: Program, allocated: Uint8Array, some = buffers): Tenants {
  const shares = sharingBuffers(buffers, some);
  const arenas = new Map<string, Range[]>();
  const rangeOf = (buffer: number): Range => {
    const { offset, bytes } = at(buffers, buffer);
    return { start: offset, end: offset + bytes, buffer };
  };
  const moveIn = (buffer: number): readonly number[] => {
    if (shares[buffer] !== 1) return none;
    const key = arenaOf(at(buffers, buffer));
    const ranges = arenas.get(key) ?? [];
    arenas.set(key, ranges);
    return replace(ranges, rangeOf(buffer));
  };
  for (const { id } of some) if (allocated[id] !== 1) moveIn(id);
  return { moveIn };
}

/**
 * Inserts `range` into the sorted ranges in place of the bytes it covers. Returns the other buffers that lose bytes.
 */
function replace(ranges: Range[], range: Range): readonly number[] {
  const first = countWhile(ranges, ({ end }) => end <= range.start);
  let last = first;
  while (last < ranges.length && at(ranges, last).start < range.end) last++;
  const covered = ranges.slice(first, last);
  const [left, right] = [covered[0], covered.at(-1)];
  ranges.splice(
    first,
    last - first,
    ...(left !== undefined && left.start < range.start ? [{ ...left, end: range.start }] : []),
    range,
    ...(right !== undefined && right.end > range.end ? [{ ...right, start: range.end }] : []),
  );
  return [...new Set(covered.map(({ buffer }) => buffer))].filter((buffer) => buffer !== range.buffer);
}

/** A mistake at a node that does not depend on the order of nodes. */
export type ContentsProblem =
  | {
      readonly kind: "unwritten";
      readonly node: number;
      readonly buffer: number;
      readonly region: number;
      readonly gap: Gap;
    }
  /** A use of a buffer that has not been allocated, or that `other` has freed. */
  | { readonly kind: "notAllocated"; readonly node: number; readonly buffer: number; readonly region: number }
  | {
      readonly kind: "freed";
      readonly node: number;
      readonly buffer: number;
      readonly region: number;
      readonly other: number;
    }
  /** A second free, or one without an alloc before it (`other` is null). */
  | { readonly kind: "freedTwice"; readonly node: number; readonly buffer: number; readonly other: number | null }
  /** An alloc of a buffer that `other` has allocated in the same run, without a free in between. */
  | { readonly kind: "allocatedTwice"; readonly node: number; readonly buffer: number; readonly other: number }
  /** An alloc of bytes that another live buffer has. */
  | {
      readonly kind: "bytesInUse";
      readonly node: number;
      readonly buffer: number;
      readonly sibling: number;
      /** Its alloc; null if it has none and is always alive. */
      readonly other: number | null;
    };

export interface Contents {
  /** A node of the run starts. If it is an alloc, `before` lists the buffers that had its bytes. */
  starts(node: number, before: readonly number[]): void;
  readonly problems: readonly ContentsProblem[];
}

/** `always`: buffers that the lists never allocate. */
const life = { none: 0, live: 1, freed: 2, always: 3 } as const;

/** `allocated` has 1 for buffers that are alive from an alloc on. `gapOf` finds what a read lacks. */
export function createContents(
  { kind, argument }: Pick<Graph, "kind" | "argument">,
  table: RegionTable,
  allocated: Uint8Array,
  gapOf: typeof findGap = findGap,
): Contents {
  const { reads, writes, buffer: bufferOf } = table;
  const state = allocated.map((isAllocated) => (isAllocated === 1 ? life.none : life.always));
  const allocatedBy = new Map<number, number>();
  const freedBy = new Map<number, number>();
  const epoch = new Int32Array(allocated.length);
  const writtenIn = new Int32Array(table.regions.length).fill(-1);
  const problems: ContentsProblem[] = [];
  const isWritten = (region: number): boolean => writtenIn[region] === epoch[at(bufferOf, region)];
  const isAlive = (node: number, region: number): boolean => {
    const buffer = at(bufferOf, region);
    if (state[buffer] === life.live || state[buffer] === life.always) return true;
    const other = freedBy.get(buffer);
    problems.push(
      other === undefined
        ? { kind: "notAllocated", node, buffer, region }
        : { kind: "freed", node, buffer, region, other },
    );
    return false;
  };
  const undefine = (buffer: number): void => {
    epoch[buffer] = at(epoch, buffer) + 1;
  };
  const alloc = (node: number, buffer: number, before: readonly number[]): void => {
    for (const sibling of before) {
      if (state[sibling] === life.live || state[sibling] === life.always)
        problems.push({ kind: "bytesInUse", node, buffer, sibling, other: allocatedBy.get(sibling) ?? null });
    }
    const other = allocatedBy.get(buffer);
    if (state[buffer] === life.live && other !== undefined) {
      problems.push({ kind: "allocatedTwice", node, buffer, other });
    }
    state[buffer] = life.live;
    allocatedBy.set(buffer, node);
    freedBy.delete(buffer);
    undefine(buffer);
  };
  const free = (node: number, buffer: number): void => {
    if (state[buffer] !== life.live) {
      problems.push({ kind: "freedTwice", node, buffer, other: freedBy.get(buffer) ?? null });
    }
    state[buffer] = life.freed;
    freedBy.set(buffer, node);
    undefine(buffer);
  };
  return {
    problems,
    starts: (node, before) => {
      if (kind[node] === nodeKinds.alloc) return alloc(node, at(argument, node), before);
      if (kind[node] === nodeKinds.free) return free(node, at(argument, node));
      for (let i = at(reads.start, node); i < at(reads.start, node + 1); i++) {
        const region = at(reads.values, i);
        if (!isAlive(node, region) || isWritten(region)) continue;
        const gap = gapOf(table, region, isWritten);
        if (gap === null) continue;
        problems.push({ kind: "unwritten", node, buffer: at(bufferOf, region), region, gap });
      }
      for (let i = at(writes.start, node); i < at(writes.start, node + 1); i++) {
        const region = at(writes.values, i);
        isAlive(node, region);
        writtenIn[region] = at(epoch, at(bufferOf, region));
      }
    },
  };
}
