import { at } from "./invariant.ts";

/** Appends to the list of a key, and makes the list if there is none. */
export function pushTo<K, T>(lists: Map<K, T[]>, key: K, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
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
