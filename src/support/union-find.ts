/** Disjoint sets over 0 .. count-1, with path halving: nearly constant time per call. */
export interface UnionFind {
  /** The representative of the set that holds `element`. */
  readonly find: (element: number) => number;
  readonly union: (a: number, b: number) => void;
}

export function createUnionFind(count: number): UnionFind {
  const parent = new Int32Array(count);
  for (let i = 0; i < count; i++) parent[i] = i;
  const up = (element: number): number => parent[element] ?? element;
  const find = (element: number): number => {
    let current = element;
    while (up(current) !== current) {
      parent[current] = up(up(current));
      current = up(current);
    }
    return current;
  };
  const union = (a: number, b: number): void => {
    // The smaller element becomes the representative, so that results do not depend on the order of unions.
    const [first, second] = [find(a), find(b)];
    parent[Math.max(first, second)] = Math.min(first, second);
  };
  return { find, union };
}
