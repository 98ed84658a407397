/** The first number that occurs a second time; undefined if each occurs once. Ascending lists, the usual ones, need no set. */
export function firstRepeated(numbers: readonly number[]): number | undefined {
  if (numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? NaN))) return undefined;
  const seen = new Set<number>();
  return numbers.find((number) => seen.size === seen.add(number).size);
}

/** Appends to the list of a key, and makes the list if there is none. */
export function pushTo<K, T>(lists: Map<K, T[]>, key: K, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
