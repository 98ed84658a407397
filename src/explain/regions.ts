/**
 * The regions of a Program: what one statement of the host program's body issues. A region that a loop issues overlaps
 * chunks of communication with kernels of others.
 */
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";

export interface RegionKey {
  /** The position of the statement in the body. */
  readonly id: number;
  readonly isLoop: boolean;
}

/** The region of the command at `index` of `rank`'s list. */
export type RegionOf = (rank: number, index: number) => RegionKey;

export function regionsOf({ ranks }: Program): RegionOf {
  return (rank, index) => {
    const { path, iteration } = at(at(ranks, rank).origins, index);
    return { id: path[0] ?? 0, isLoop: iteration.length > 0 };
  };
}
