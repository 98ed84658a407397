/**
 * Branded integer ids. An id is an index into one table of one program, so that two kinds of index
 * cannot be mixed up. Ids are dense: a table of n rows has the ids 0 .. n-1.
 */
declare const brand: unique symbol;

export type Id<Name extends string> = number & { readonly [brand]: Name };

/** The id of row `index`. The only place where a number becomes an id. */
export function makeId<T extends number>(index: number): T {
  return index as T;
}
