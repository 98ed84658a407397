/** Disjoint classes of 0 .. count-1, which can be joined. */
import { at } from "../../support/invariant.ts";

export interface Classes {
  /** The number of an element's class: the least of its elements. */
  readonly of: (element: number) => number;
  /** Makes one class of the elements' classes. */
  readonly join: (elements: readonly number[]) => void;
}

export function createClasses(count: number): Classes {
  const parents = Array.from({ length: count }, (_, element) => element);
  const of = (element: number): number => {
    let root = element;
    while (at(parents, root) !== root) root = at(parents, root);
    for (let each = element; each !== root;) {
      const next = at(parents, each);
      parents[each] = root;
      each = next;
    }
    return root;
  };
  return {
    of,
    join: ([first, ...others]) => {
      if (first === undefined) return;
      for (const other of others) {
        const [a, b] = [of(first), of(other)];
        parents[Math.max(a, b)] = Math.min(a, b);
      }
    },
  };
}
