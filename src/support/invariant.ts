/** Guarantees that TypeScript cannot check, each stated here once, and lists by key. */

/**
 * `invariant` checks a guarantee of Braid itself. A failure is a bug in Braid, never a mistake of the user. The message
 * has the context for a bug report.
 */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

export function invariant(condition: unknown, what: string, context?: unknown): asserts condition {
  if (condition) return;
  const detail = context === undefined ? "" : ` (${JSON.stringify(context)})`;
  throw new InvariantError(
    `invariant: ${what}${detail}. This is a bug in Braid; please report it with the program that caused it.`,
  );
}

/** `array[index]`, where Braid guarantees that the element exists. */
export function at<T>(array: ArrayLike<T>, index: number, what = "index in range"): T {
  const value = array[index];
  if (value === undefined) invariant(false, what, { index, length: array.length });
  return value as T;
}

/**
 * Ends every switch over a union. A missing case is a compile error; an invalid value at run time throws a clear error.
 */
export function unreachable(value: never): never {
  throw new Error(`invariant: no case for ${JSON.stringify(value)}`);
}

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

/** An object under construction, whose fields are set one by one. */
export type Unfinished<T> = { -readonly [K in keyof T]?: T[K] | undefined };

/** The finished object. The caller guarantees that all fields are set; TypeScript cannot check it. */
export function finished<T>(draft: Unfinished<T>): T {
  return draft as T;
}

/**
 * Rule tables over a union on `kind`: one function per kind, so that a new kind is a compile error in every table.
 * `dispatch` calls a node's rule. TypeScript cannot see that row and node have the same kind, so the cast is here,
 * once.
 */
export type RuleTable<Union extends { readonly kind: string }, Result, Rest extends readonly unknown[] = []> = {
  readonly [K in Union["kind"]]: (node: Extract<Union, { readonly kind: K }>, ...rest: Rest) => Result;
};

export function dispatch<Union extends { readonly kind: string }, Result, Rest extends readonly unknown[]>(
  table: RuleTable<Union, Result, Rest>,
  node: Union,
  ...rest: Rest
): Result {
  const kind: Union["kind"] = node.kind;
  const rule = table[kind] as (node: Union, ...rest: Rest) => Result;
  return rule(node, ...rest);
}

/** Appends to the list of a key, and makes the list if there is none. */
export function pushTo<K, T>(lists: Map<K, T[]>, key: K, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** The items with each key, in their order; without those whose key is null. */
export function groupedBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K | null): ReadonlyMap<K, readonly T[]> {
  const lists = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key !== null) pushTo(lists, key, item);
  }
  return lists;
}

/** The value of a key, which is made where there is none. */
export function getOrMake<K, V>(values: MapLike<K, V>, key: K, make: () => V): V {
  const known = values.get(key);
  if (known !== undefined) return known;
  const made = make();
  values.set(key, made);
  return made;
}

interface MapLike<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/** How many of the first satisfy what no later one does. */
export function countWhile<T>(all: ArrayLike<T>, is: (each: T) => boolean): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(at(all, middle))) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What `make` makes, which is called when it is first asked for. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
