/**
 * Which indices of an axis a device holds, as runs. A split cuts an extent E into parts of c = ceil(E / factor) indices
 * (an inner split into parts of c = factor); index j lies in part floor(j / c) at j mod c. Later parts may be shorter
 * or empty. A split of an inner part cuts the full length c, also where a part is shorter: indices beyond the axis do
 * not exist.
 *
 *   [i{7} split outer 3]              c = 3           parts 0 1 2 | 3 4 5 | 6
 *   [i{5} split outer 4]              c = 2           parts 0 1 | 2 3 | 4 |
 *   [i{10} split outer 2, outer 2]    c = 5, then 3   parts 0 1 2, 3 4 | 5 6 7, 8 9
 *
 * The elements of a share lie in memory in ascending order of their indices.
 */
import { at } from "../support/invariant.ts";
import { splitOf } from "./axis-levels.ts";
import { type AxisPart, partTypeOf } from "./axis-shards.ts";
import { type DIDType, isDID, type IterDomain, type IterDomainId, type TensorDomain } from "./domain.ts";

/** The indices from `start` to `stop` - 1. */
export interface Run {
  readonly start: number;
  readonly stop: number;
}

/** Not empty, ascending, and joined where they touch. */
export type Runs = readonly Run[];

/** The index of a part that is held; null if all of them are. */
export type CoordinateOf = (part: Pick<AxisPart, "id" | "parallelType">) => number | null;

/** Everything of every part but those with a DID type, of which the device holds the given index. */
export function onDevice(coordinate: (type: DIDType) => number): CoordinateOf {
  return ({ parallelType }) => (isDID(parallelType) ? coordinate(parallelType) : null);
}

/** The indices of an axis of `size` elements that lie in the given parts. */
export function heldRuns(domain: TensorDomain, axis: IterDomain, size: number, coordinateOf: CoordinateOf): Runs {
  const runsOf = (id: IterDomainId, extent: number): Runs => {
    const split = splitOf(domain, id);
    if (split === null) {
      const parallelType = id === axis.id ? axis.parallelType : partTypeOf(domain, id);
      const index = coordinateOf({ id, parallelType });
      return index === null ? runsBetween(0, extent) : runsBetween(index, Math.min(index + 1, extent));
    }
    const rest = Math.ceil(extent / split.factor);
    const [outer, inner] = split.innerSplit ? [rest, split.factor] : [split.factor, rest];
    return nest(runsOf(split.outer, outer), runsOf(split.inner, inner), inner, extent);
  };
  return runsOf(axis.id, size);
}

/**
 * Which index of the part `part` the index `index` of an axis of `size` elements lies in, and the first index after it
 * that may lie in another. Null if the axis has no such part.
 */
export function partIndexAt(
  domain: TensorDomain,
  axis: IterDomain,
  size: number,
  part: IterDomainId,
  index: number,
): { readonly held: number; readonly end: number } | null {
  const within = (
    id: IterDomainId,
    extent: number,
    at: number,
  ): { readonly held: number; readonly end: number } | null => {
    if (id === part) return { held: at, end: at + 1 };
    const split = domain.transforms.find((transform) => transform.kind === "split" && transform.input === id);
    if (split?.kind !== "split") return null;
    const rest = Math.ceil(extent / split.factor);
    const [outer, inner] = split.innerSplit ? [rest, split.factor] : [split.factor, rest];
    const position = Math.floor(at / inner);
    const inOuter = within(split.outer, outer, position);
    if (inOuter !== null) return { ...inOuter, end: inOuter.end * inner };
    const inInner = within(split.inner, inner, at - position * inner);
    return inInner === null ? null : { ...inInner, end: position * inner + Math.min(inInner.end, inner) };
  };
  return within(axis.id, size, index);
}

/** The indices a * length + b below `end`, for a in `outer` and b in `inner`. */
function nest(outer: Runs, inner: Runs, length: number, end: number): Runs {
  const isWhole = countIn(inner) === length;
  const found = outer.flatMap(({ start, stop }): Runs => {
    if (isWhole) return runsBetween(start * length, Math.min(stop * length, end));
    return Array.from({ length: Math.max(0, Math.min(stop, Math.ceil(end / length)) - start) }, (_, i) =>
      inner.flatMap((run) => {
        const from = (start + i) * length;
        return runsBetween(from + run.start, Math.min(from + run.stop, end));
      }),
    ).flat();
  });
  return joined(found);
}

/** One run, or none if it would be empty. */
export function runsBetween(start: number, stop: number): Runs {
  return start < stop ? [{ start, stop }] : [];
}

function joined(runs: Runs): Runs {
  const result: Run[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last?.stop === run.start) result[result.length - 1] = { start: last.start, stop: run.stop };
    else result.push(run);
  }
  return result;
}

/** The number of indices. */
export function countIn(runs: Runs): number {
  return runs.reduce((count, { start, stop }) => count + stop - start, 0);
}

/** The number of indices below `index`: the position of that index in memory if it is held. */
export function countBelow(runs: Runs, index: number): number {
  return runs.reduce((count, { start, stop }) => count + Math.max(0, Math.min(stop, index) - start), 0);
}

export function sameRuns(a: Runs, b: Runs): boolean {
  return (
    a === b || (a.length === b.length && a.every(({ start, stop }, i) => b[i]?.start === start && b[i].stop === stop))
  );
}

/** The indices in both. */
export function intersection(a: Runs, b: Runs): Runs {
  const result: Run[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const [one, other] = [at(a, i), at(b, j)];
    result.push(...runsBetween(Math.max(one.start, other.start), Math.min(one.stop, other.stop)));
    if (one.stop <= other.stop) i++;
    else j++;
  }
  return result;
}

/** The indices of `a` that are not in `b`. */
export function difference(a: Runs, b: Runs): Runs {
  return a.flatMap(({ start, stop }) => {
    const rest: Run[] = [];
    let from = start;
    for (const taken of b) {
      if (taken.stop <= from || taken.start >= stop) continue;
      rest.push(...runsBetween(from, taken.start));
      from = taken.stop;
    }
    return [...rest, ...runsBetween(from, stop)];
  });
}

/** The indices in positions `start` to `stop` - 1 of memory. */
export function onPositions(runs: Runs, start: number, stop: number): Runs {
  let position = 0;
  return runs.flatMap((run) => {
    const from = run.start - position;
    position += run.stop - run.start;
    return runsBetween(Math.max(run.start, from + start), Math.min(run.stop, from + stop));
  });
}
