/** The buffers of each rank, numbered within the rank. */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { sameNumbers } from "../../commands/view.ts";
import { at, keysOf } from "../../support/invariant.ts";

export interface RankBuffers {
  /** By buffer: its number among those of its rank. */
  readonly numberOf: Int32Array;
  /** By rank: the id of its first buffer if the others follow it, else -1. */
  readonly baseOf: Int32Array;
  /** By rank: the lowest rank with arenas and buffers that are equal, number by number, and have equal places. */
  readonly likeRank: Int32Array;
}

export function createRankBuffers({ ranks, buffers }: Program): RankBuffers {
  const byRank = ranks.map((): PlacedBuffer[] => []);
  const numberOf = Int32Array.from(buffers, (buffer) => at(byRank, buffer.rank).push(buffer) - 1);
  const baseOf = Int32Array.from(byRank, (own) => own[0]?.id ?? 0);
  for (const [id, { rank }] of buffers.entries()) {
    if (at(baseOf, rank) + at(numberOf, id) !== id) baseOf[rank] = -1;
  }
  const kinds: number[] = [];
  const likeRank = Int32Array.from(byRank, (own, rank) => {
    const { arenaBytes } = at(ranks, rank);
    const known = kinds.find((other) => {
      const theirs = at(byRank, other);
      return (
        keysOf(arenaBytes).every((arena) => arenaBytes[arena] === at(ranks, other).arenaBytes[arena]) &&
        own.length === theirs.length &&
        own.every((buffer, i) => sameBuffer(buffer, at(theirs, i)))
      );
    });
    if (known === undefined) kinds.push(rank);
    return known ?? rank;
  });
  return { numberOf, baseOf, likeRank };
}

function sameBuffer(a: PlacedBuffer, b: PlacedBuffer): boolean {
  return (
    a.role === b.role &&
    a.output === b.output &&
    a.arena === b.arena &&
    a.offset === b.offset &&
    a.bytes === b.bytes &&
    a.dtype === b.dtype &&
    a.name === b.name &&
    a.position === b.position &&
    sameNumbers(a.shape, b.shape)
  );
}
