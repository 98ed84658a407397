/** The accesses of ranks to the memory of others. Accesses to the same bytes count once. */
import type { Program } from "../../../commands/program.ts";
import type { Memory } from "./memory.ts";
import { type Touch, touchesMeet } from "./touch.ts";
import { createTouchIndex, type TouchIndex } from "./touch-index.ts";

export interface Foreign {
  /** Whether another rank's access shares a byte with one of these, which are to own memory, unless both read. */
  readonly conflicts: (touches: readonly Touch[]) => boolean;
  /** The accesses of other ranks that share a byte with this one. */
  readonly meeting: (touch: Touch) => readonly Touch[];
}

export function foreignTouches({ ranks }: Program, memory: Memory): Foreign {
  const known = new Set<Touch>();
  const byPlace = new Map<number, TouchIndex<Touch>>();
  for (const { rank, commands } of ranks) {
    for (const command of commands) {
      for (const touch of memory.touches(command)) {
        if (touch.rank === rank) continue;
        if (known.has(touch)) continue;
        known.add(touch);
        const index = byPlace.get(touch.place) ?? createTouchIndex<Touch>();
        byPlace.set(touch.place, index);
        index.add(touch, touch);
      }
    }
  }
  const conflicting = new Map<Touch, boolean>();
  const conflicts = (touch: Touch): boolean => {
    const decided = conflicting.get(touch);
    if (decided !== undefined) return decided;
    const decision =
      byPlace.get(touch.place)?.some(touch, (other) => (touch.writes || other.writes) && touchesMeet(touch, other)) ??
      false;
    conflicting.set(touch, decision);
    return decision;
  };
  return {
    conflicts: (touches) => touches.some(conflicts),
    meeting: (touch) => {
      const found: Touch[] = [];
      byPlace.get(touch.place)?.some(touch, (other) => {
        if (touchesMeet(touch, other)) found.push(other);
        return false;
      });
      return found;
    },
  };
}
