/**
 * Branded integer ids. An id is an index into one table of one program; the brand keeps indices of different tables
 * apart. Ids are dense: a table of n rows has the ids 0 .. n-1.
 */
declare const brand: unique symbol;

export type Id<Name extends string> = number & { readonly [brand]: Name };

/** The id of row `index`. Numbers become ids only here. */
export function makeId<T extends number>(index: number): T {
  return index as T;
}
