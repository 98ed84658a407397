/**
 * The accesses of ranks to the memory of others. Accesses to the same bytes count once. Those to a rank's memory are
 * found when they are asked for: a symmetry takes what a representative does to other ranks to what is done there.
 */
import type { Program } from "../../../commands/program.ts";
import { at, getOrMake, pushTo } from "../../../support/invariant.ts";
import { type RankGroup, representativesOf } from "../../../verify/classes/rank-group.ts";
import type { DraftMemory } from "./memory.ts";
import { type Touch, touchesMeet } from "./touch.ts";
import { createTouchIndex, type TouchIndex } from "./touch-index.ts";

export interface Foreign {
  /** Whether another rank's access shares a byte with one of these, which are to own memory, unless both read. */
  readonly conflicts: (touches: readonly Touch[]) => boolean;
  /** The accesses of other ranks that share a byte with this one. */
  readonly meeting: (touch: Touch) => readonly Touch[];
}

/** A command of a representative that accesses the memory of another rank. */
interface Access {
  readonly rank: number;
  readonly position: number;
  readonly owner: number;
}

export function foreignTouches({ ranks }: Program, group: RankGroup, memory: DraftMemory): Foreign {
  const { elements, elementTo, inverse, representative } = group;
  /** By the representative of the owner. */
  const accesses = new Map<number, Access[]>();
  for (const rank of representativesOf(group)) {
    for (const [position, command] of at(ranks, rank).commands.entries()) {
      for (const owner of new Set(memory.touches(command).map((touch) => touch.rank))) {
        if (owner === rank) continue;
        pushTo(accesses, at(representative, owner), { rank, position, owner });
      }
    }
  }
  const indexOf = (owner: number): ReadonlyMap<number, TouchIndex<Touch>> => {
    const known = new Set<Touch>();
    const byPlace = new Map<number, TouchIndex<Touch>>();
    const fromRepresentative = at(elements, at(elementTo, owner));
    for (const access of accesses.get(at(representative, owner)) ?? []) {
      const toRepresentative = at(elements, at(inverse, at(elementTo, access.owner)));
      const list = at(ranks, at(fromRepresentative, at(toRepresentative, access.rank)));
      for (const touch of memory.touches(at(list.commands, access.position))) {
        if (touch.rank !== owner || known.has(touch)) continue;
        known.add(touch);
        const index = getOrMake(byPlace, touch.place, () => createTouchIndex<Touch>());
        index.add(touch, touch);
      }
    }
    return byPlace;
  };
  const byOwner = new Map<number, ReadonlyMap<number, TouchIndex<Touch>>>();
  const indexAt = ({ rank, place }: Touch): TouchIndex<Touch> | undefined => {
    const known = getOrMake(byOwner, rank, () => indexOf(rank));
    return known.get(place);
  };
  const conflicting = new Map<Touch, boolean>();
  const conflicts = (touch: Touch): boolean => {
    const decided = conflicting.get(touch);
    if (decided !== undefined) return decided;
    const decision =
      indexAt(touch)?.some(touch, (other) => (touch.writes || other.writes) && touchesMeet(touch, other)) ?? false;
    conflicting.set(touch, decision);
    return decision;
  };
  return {
    conflicts: (touches) => touches.some(conflicts),
    meeting: (touch) => {
      const found: Touch[] = [];
      indexAt(touch)?.some(touch, (other) => {
        if (touchesMeet(touch, other)) found.push(other);
        return false;
      });
      return found;
    },
  };
}
