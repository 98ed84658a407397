/** Divides a list into groups of given sizes: `1-3-4` divides ten elements into one, three, four and two. */
import { at } from "../../support/invariant.ts";

/** The last size repeats. */
export type Grouping = readonly number[];

export function grouped<T>(items: readonly T[], sizes: Grouping): readonly (readonly T[])[] {
  const groups: T[][] = [];
  for (let start = 0; start < items.length;) {
    const size = sizes[groups.length] ?? at(sizes, sizes.length - 1);
    groups.push(items.slice(start, start + size));
    start += size;
  }
  return groups;
}
