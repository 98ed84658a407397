/** The buffers of each rank, numbered within the rank. */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { sameNumbers } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";

export interface RankBuffers {
  /** By buffer: its number among those of its rank. */
  readonly numberOf: Int32Array;
  /** Whether all buffers of two ranks are equal, number by number, and have equal places. */
  areAlike(rank: number, other: number): boolean;
}

export function createRankBuffers({ ranks, buffers }: Program): RankBuffers {
  const byRank = ranks.map((): PlacedBuffer[] => []);
  const numberOf = Int32Array.from(buffers, (buffer) => at(byRank, buffer.rank).push(buffer) - 1);
  return {
    numberOf,
    areAlike: (rank, other) => {
      const [own, theirs] = [at(byRank, rank), at(byRank, other)];
      return own.length === theirs.length && own.every((buffer, i) => sameBuffer(buffer, at(theirs, i)));
    },
  };
}

function sameBuffer(a: PlacedBuffer, b: PlacedBuffer): boolean {
  return (
    a.role === b.role &&
    a.arena === b.arena &&
    a.offset === b.offset &&
    a.bytes === b.bytes &&
    a.dtype === b.dtype &&
    a.name === b.name &&
    a.position === b.position &&
    sameNumbers(a.shape, b.shape)
  );
}
