/** Whether a value from outside the type checker is one of a list of string literals. */
export function isOneOf<T extends string>(values: readonly T[], value: unknown): value is T {
  return values.some((candidate) => candidate === value);
}

/** The keys of a table, with their literal types. The table must have exactly the keys of its type. */
export function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] {
  return Object.keys(table) as K[];
}

/** The keys that an object has. Its type must have no others. */
export function keysIn<T extends object>(object: T): readonly (keyof T)[] {
  return Object.keys(object) as (keyof T)[];
}

/** The object with each value changed. Its type may have optional keys. */
export function mapValues<T, A, B>(
  object: { readonly [K in keyof T]: A },
  change: (value: A) => B,
): { readonly [K in keyof T]: B } {
  const entries = Object.entries<A>(object).map(([key, value]) => [key, change(value)]);
  return Object.fromEntries(entries) as { readonly [K in keyof T]: B };
}
