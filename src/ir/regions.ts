/**
 * Which elements of a tensor somebody holds, or lacks: a region has some indices of each axis, and all elements with
 * these indices.
 */
import { at } from "../support/invariant.ts";
import { countIn, difference, intersection, type Runs } from "./axis-runs.ts";

/** The indices of each axis. Empty if one of them is. */
export type Region = readonly Runs[];

/** The number of elements. */
export function elementsIn(region: Region): number {
  return region.reduce((count, runs) => count * countIn(runs), 1);
}

export function commonRegion(a: Region, b: Region): Region {
  return a.map((runs, axis) => intersection(runs, at(b, axis)));
}

/** The elements of `a` that are not in `b`, as regions without common elements. */
export function regionsWithout(a: Region, b: Region): readonly Region[] {
  const found: Region[] = [];
  const common: Runs[] = [];
  for (const [axis, runs] of a.entries()) {
    const rest = [...common, difference(runs, at(b, axis)), ...a.slice(axis + 1)];
    if (!isEmptyRegion(rest)) found.push(rest);
    common.push(intersection(runs, at(b, axis)));
  }
  return found;
}

function isEmptyRegion(region: Region): boolean {
  return region.some((runs) => runs.length === 0);
}

/** What each holder gives of `wanted`: every element comes from the first holder that has it. */
export function givenInTurn<T>(
  wanted: Region,
  holders: readonly T[],
  heldBy: (holder: T) => Region,
): ReadonlyMap<T, readonly Region[]> {
  const given = new Map<T, readonly Region[]>();
  let rest: readonly Region[] = isEmptyRegion(wanted) ? [] : [wanted];
  for (const holder of holders) {
    if (rest.length === 0) break;
    const held = heldBy(holder);
    const taken = rest.map((region) => commonRegion(region, held)).filter((region) => !isEmptyRegion(region));
    if (taken.length === 0) continue;
    given.set(holder, taken);
    rest = rest.flatMap((region) => regionsWithout(region, held));
  }
  return given;
}

/** The holders, `reader` first and then round in a ring, so that readers of equal copies take turns. */
export function inTurnFrom<T>(holders: readonly T[], reader: T, readers: readonly T[]): readonly T[] {
  const own = holders.indexOf(reader);
  const first = own >= 0 ? own : Math.max(0, readers.indexOf(reader)) % Math.max(1, holders.length);
  return [...holders.slice(first), ...holders.slice(0, first)];
}
