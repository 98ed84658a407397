/** Future events by time; events at the same time come first in, first out. A binary heap. */
import { at } from "../support/invariant.ts";

export interface Calendar<T> {
  add(time: number, what: T): void;
  /** Removes and returns the first; null if nothing is left. */
  next(): { readonly time: number; readonly what: T } | null;
}

interface Entry<T> {
  readonly time: number;
  readonly order: number;
  readonly what: T;
}

export function createCalendar<T>(): Calendar<T> {
  const heap: Entry<T>[] = [];
  let added = 0;
  const isBefore = (a: Entry<T>, b: Entry<T>): boolean => a.time < b.time || (a.time === b.time && a.order < b.order);
  return {
    add: (time, what) => {
      const entry = { time, order: added++, what };
      let position = heap.length;
      heap.push(entry);
      while (position > 0) {
        const parent = (position - 1) >> 1;
        if (!isBefore(entry, at(heap, parent))) break;
        heap[position] = at(heap, parent);
        position = parent;
      }
      heap[position] = entry;
    },
    next: () => {
      const first = heap[0];
      const last = heap.pop();
      if (first === undefined || last === undefined) return null;
      if (heap.length > 0) sink(heap, last, isBefore);
      return first;
    },
  };
}

/** Puts `entry` in the place of the first. */
function sink<T>(heap: Entry<T>[], entry: Entry<T>, isBefore: (a: Entry<T>, b: Entry<T>) => boolean): void {
  let position = 0;
  for (;;) {
    const left = 2 * position + 1;
    if (left >= heap.length) break;
    const right = left + 1;
    const child = right < heap.length && isBefore(at(heap, right), at(heap, left)) ? right : left;
    if (!isBefore(at(heap, child), entry)) break;
    heap[position] = at(heap, child);
    position = child;
  }
  heap[position] = entry;
}
