/** The keys of a table, with their literal types. The table must have exactly the keys of its type. */
export function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] {
  return Object.keys(table) as K[];
}
