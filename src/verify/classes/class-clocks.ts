/**
 * Clock vectors of the representatives' chains, with an entry for every chain of every rank. A snapshot can be read as
 * that of another rank of the class: with the entries of each rank moved to where an element takes the rank.
 */
import { at } from "../../support/invariant.ts";
import type { ClassGraph } from "./class-graph.ts";

/** What a representative's chain knew at `position`. The row is not written any more. */
export interface ClassSnapshot {
  readonly row: Int32Array;
  readonly chain: number;
  readonly position: number;
}

export interface ClassClocks {
  /** The chain's row. Valid until its next join. */
  view(chain: number): Int32Array;
  snapshot(chain: number, position: number): ClassSnapshot;
  /** Adds what the image of the snapshot under `element` knows to the knowledge of `chain`. */
  join(chain: number, snapshot: ClassSnapshot, element: number): void;
  /** The same for all elements: what all ranks of a class knew. */
  joinAll(chain: number, snapshot: ClassSnapshot): void;
  /** The chain of the image rank. */
  moved(chain: number, element: number): number;
}

export function createClassClocks({ program, group, chainBase, nodesOf }: ClassGraph): ClassClocks {
  const { elements, representative } = group;
  const rankCount = program.ranks.length;
  const width = at(chainBase, rankCount);
  const nothing = new Int32Array(width);
  const rows = new Map([...nodesOf.keys()].map((chain) => [chain, nothing]));
  /** Chains whose row a snapshot has. */
  const shared = new Set(rows.keys());
  const rankOfChain = new Int32Array(width);
  for (let rank = 0; rank < rankCount; rank++) rankOfChain.fill(rank, at(chainBase, rank), at(chainBase, rank + 1));
  const rowOf = (chain: number): Int32Array => rows.get(chain) ?? nothing;
  const moved = (chain: number, element: number): number => {
    const rank = at(rankOfChain, chain);
    return at(chainBase, at(at(elements, element), rank)) + chain - at(chainBase, rank);
  };
  const ownRow = (chain: number): Int32Array => {
    const row = rowOf(chain);
    if (!shared.delete(chain)) return row;
    const copy = row.slice();
    rows.set(chain, copy);
    return copy;
  };
  return {
    view: rowOf,
    moved,
    snapshot: (chain, position) => {
      shared.add(chain);
      return { row: rowOf(chain), chain, position };
    },
    join: (chain, { row, chain: of, position }, element) => {
      const from = moved(of, element);
      if (from === chain || at(rowOf(chain), from) >= position) return;
      const target = ownRow(chain);
      if (element === 0) raise(target, 0, row, 0, width);
      else {
        const to = at(elements, element);
        for (let rank = 0; rank < rankCount; rank++) {
          const base = at(chainBase, rank);
          raise(target, at(chainBase, at(to, rank)), row, base, at(chainBase, rank + 1) - base);
        }
      }
      target[from] = position;
    },
    joinAll: (chain, { row, chain: of, position }) => {
      const most = row.slice();
      most[of] = Math.max(at(most, of), position);
      const eachRank = (visit: (base: number, representatives: number, count: number) => void): void => {
        for (let rank = 0; rank < rankCount; rank++) {
          const base = at(chainBase, rank);
          visit(base, at(chainBase, at(representative, rank)), at(chainBase, rank + 1) - base);
        }
      };
      eachRank((base, of, count) => raise(most, of, most, base, count));
      const target = ownRow(chain);
      eachRank((base, of, count) => raise(target, base, most, of, count));
    },
  };
}

function raise(into: Int32Array, place: number, by: Int32Array, from: number, count: number): void {
  for (let i = 0; i < count; i++) {
    const value = by[from + i] ?? 0;
    if (value > (into[place + i] ?? 0)) into[place + i] = value;
  }
}
