/**
 * Which elements of a tensor somebody holds, or lacks: a region has some indices of each axis, and all elements with
 * these indices.
 */
import { at } from "../support/invariant.ts";
import { countIn, difference, intersection, type Runs } from "./runs.ts";

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
function regionsWithout(a: Region, b: Region): readonly Region[] {
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

/** A region, and all who hold it. */
export interface Holding<T> {
  readonly region: Region;
  readonly holders: readonly T[];
}

export function holdingsOf<T>(holders: readonly T[], heldBy: (holder: T) => Region): readonly Holding<T>[] {
  const found = new Map<string, { readonly region: Region; readonly holders: T[] }>();
  for (const holder of holders) {
    const region = heldBy(holder);
    const key = JSON.stringify(region);
    const known = found.get(key);
    if (known === undefined) found.set(key, { region, holders: [holder] });
    else known.holders.push(holder);
  }
  return [...found.values()];
}

/**
 * What each holder gives of `wanted`. The reader gives itself what it has; holders of equal copies take turns, by the
 * reader's position among the readers.
 */
export function givenTo<T>(
  reader: T,
  position: number,
  wanted: Region,
  holdings: readonly Holding<T>[],
): ReadonlyMap<T, readonly Region[]> {
  const given = new Map<T, readonly Region[]>();
  let rest: readonly Region[] = isEmptyRegion(wanted) ? [] : [wanted];
  const own = holdings.findIndex(({ holders }) => holders.includes(reader));
  const first = Math.max(0, own);
  for (let i = 0; i < holdings.length && rest.length > 0; i++) {
    const { region, holders } = at(holdings, (first + i) % holdings.length);
    const taken = rest.map((left) => commonRegion(left, region)).filter((common) => !isEmptyRegion(common));
    if (taken.length === 0) continue;
    given.set(i === 0 && own >= 0 ? reader : at(holders, position % holders.length), taken);
    rest = rest.flatMap((left) => regionsWithout(left, region));
  }
  return given;
}
