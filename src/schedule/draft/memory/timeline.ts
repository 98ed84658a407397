/** Finds the next or the previous nodes of a draft that may access some bytes, without looking at those between. */
import { countWhile } from "../../../support/invariant.ts";
import type { Touch } from "./touch.ts";
import { type Bins, createBins } from "./touch-index.ts";

export interface AccessTimeline {
  readonly add: (position: number, touches: readonly Touch[]) => void;
  /** Positions after, ascending, of nodes that may share bytes with one of the accesses. May repeat one. */
  readonly after: (position: number, touches: readonly Touch[]) => Iterable<number>;
  /** The same before, descending. */
  readonly before: (position: number, touches: readonly Touch[]) => Iterable<number>;
}

export function createTimeline(): AccessTimeline {
  const byPlace = new Map<number, Bins<number[]>>();
  const listsOf = (touches: readonly Touch[]): readonly (readonly number[])[] => {
    const lists: (readonly number[])[] = [];
    for (const touch of touches) {
      byPlace.get(touch.place)?.some(touch, (positions) => {
        lists.push(positions);
        return false;
      });
    }
    return lists;
  };
  return {
    add: (position, touches) => {
      for (const touch of touches) {
        const bins = byPlace.get(touch.place) ?? createBins<number[]>(() => []);
        byPlace.set(touch.place, bins);
        const positions = bins.binOf(touch);
        if (positions === null) continue;
        const place = countWhile(positions, (other) => other < position);
        if (positions[place] !== position) positions.splice(place, 0, position);
      }
    },
    *after(position, touches) {
      const cursors = listsOf(touches).map((list) => ({ list, next: countWhile(list, (other) => other <= position) }));
      for (;;) {
        let least = Infinity;
        for (const { list, next } of cursors) least = Math.min(least, list[next] ?? Infinity);
        if (least === Infinity) return;
        for (const cursor of cursors) if (cursor.list[cursor.next] === least) cursor.next++;
        yield least;
      }
    },
    *before(position, touches) {
      const cursors = listsOf(touches).map((list) => ({
        list,
        next: countWhile(list, (other) => other < position) - 1,
      }));
      for (;;) {
        let most = -1;
        for (const { list, next } of cursors) most = Math.max(most, list[next] ?? -1);
        if (most === -1) return;
        for (const cursor of cursors) if (cursor.list[cursor.next] === most) cursor.next--;
        yield most;
      }
    },
  };
}
