/**
 * The waits of a rank whose guarantees are known, by what they guarantee. An access comes after the first wait that
 * guarantees each other access which it conflicts with, and after the first wait for each rank whose memory it touches.
 * Later waits guarantee nothing more: a signal reports everything that its sender has done, so the second chunk's
 * signal also reports that the first chunk has arrived.
 */
import type { ListOrder } from "./list-order.ts";
import { type Touch, touchesMeet } from "../memory/touch.ts";
import type { Done, Guarantee } from "./signal-guarantees.ts";
import { createTouchIndex, type TouchIndex } from "../memory/touch-index.ts";

export interface KnownWaits {
  /** In list order. */
  readonly add: (position: number, id: number, guarantee: Guarantee) => void;
  /** The ids of the waits that the accesses of the command at `position` come after. */
  readonly before: (position: number, touches: readonly Touch[]) => readonly number[];
}

interface Wait {
  readonly position: number;
  readonly id: number;
}

export function createKnownWaits(rank: number, order: ListOrder): KnownWaits {
  const byDone = new Map<Done, Wait[]>();
  const doneIn = new Map<number, TouchIndex<Done>>();
  const bySender = new Map<number, Wait[]>();
  /** Only the first wait of each stream: it is before whatever a later one is before. */
  const addFirst = <K>(waits: Map<K, Wait[]>, key: K, wait: Wait): void => {
    const known = waits.get(key);
    const stream = order.streamOf(wait.position);
    if (known === undefined) waits.set(key, [wait]);
    else if (!known.some(({ position }) => order.streamOf(position) === stream)) known.push(wait);
  };
  return {
    add: (position, id, { done, senders }) => {
      for (const each of done) {
        if (!byDone.has(each)) {
          const index = doneIn.get(each.place) ?? createTouchIndex<Done>();
          doneIn.set(each.place, index);
          index.add(each, each);
        }
        addFirst(byDone, each, { position, id });
      }
      for (const sender of senders) addFirst(bySender, sender, { position, id });
    },
    before: (position, touches) => {
      const ids = new Set<number>();
      const addEarliest = (waits: readonly Wait[] = []): void => {
        const first = waits.find((wait) => order.before(wait.position, position));
        if (first !== undefined) ids.add(first.id);
      };
      for (const touch of touches) {
        doneIn.get(touch.place)?.some(touch, (done) => {
          if ((touch.writes || done.writes) && touchesMeet(touch, done)) addEarliest(byDone.get(done));
          return false;
        });
        if (touch.rank !== rank) addEarliest(bySender.get(touch.rank));
      }
      return [...ids].sort((a, b) => a - b);
    },
  };
}
