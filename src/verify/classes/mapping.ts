/** A permutation of ranks, and where it takes slots, transfers and regions, as far as lists have been compared. */
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Participants } from "../order/participants.ts";
import type { MovedRegions } from "./moved-regions.ts";
import type { RankBuffers } from "./rank-buffers.ts";
import type { Permutation } from "./rank-group.ts";

export interface Mapped {
  readonly program: Program;
  readonly buffers: RankBuffers;
  readonly participants: Participants;
  /** The node before each rank's command 0, as in the graph. */
  readonly nodeBase: Int32Array;
}

export interface Mapping extends Mapped {
  readonly to: Permutation;
  readonly regions: MovedRegions;
  readonly slots: OneToOne;
  readonly transfers: OneToOne;
  /** Launches that read several slices of one buffer: compared once it is known where other commands move the slices. */
  readonly later: (() => boolean)[];
}

export interface OneToOne {
  readonly images: Int32Array;
  /** False if either already belongs to another. */
  pair(from: number, to: number): boolean;
}

export function createOneToOne(count: number): OneToOne {
  const images = new Int32Array(count).fill(-1);
  const sources = new Int32Array(count).fill(-1);
  return {
    images,
    pair: (from, to) => {
      if (images[from] === to && sources[to] === from) return true;
      if (images[from] !== -1 || sources[to] !== -1) return false;
      images[from] = to;
      sources[to] = from;
      return true;
    },
  };
}

export function sameSlot({ program, to, slots }: Mapping, a: number, b: number): boolean {
  const [own, image] = [at(program.slots, a), at(program.slots, b)];
  return at(to, own.signaller) === image.signaller && at(to, own.waiter) === image.waiter && slots.pair(a, b);
}

export function sameBuffer({ program, to, buffers }: Mapping, a: number, b: number): boolean {
  return (
    at(to, at(program.buffers, a).rank) === at(program.buffers, b).rank &&
    at(buffers.numberOf, a) === at(buffers.numberOf, b)
  );
}
