/**
 * Future events by time; events at the same time come first in, first out. A binary heap whose times and turns are
 * typed arrays, so that an event makes no garbage.
 */
import { at, invariant } from "../support/invariant.ts";

export interface Calendar<T> {
  add(time: number, what: T): void;
  /** Removes and returns the first; null if nothing is left. */
  next(): { readonly time: number; readonly what: T } | null;
}

export function createCalendar<T>(): Calendar<T> {
  let times = new Float64Array(64);
  /** The number of events that were added earlier. */
  let turns = new Float64Array(64);
  const whats: T[] = [];
  let added = 0;
  const isBefore = (time: number, turn: number, place: number): boolean => {
    const other = at(times, place);
    return time < other || (time === other && turn < at(turns, place));
  };
  const put = (place: number, time: number, turn: number, what: T): void => {
    times[place] = time;
    turns[place] = turn;
    whats[place] = what;
  };
  const move = (from: number, to: number): void => {
    put(to, at(times, from), at(turns, from), at(whats, from));
  };
  /** Puts an event in the place of the first. */
  const sink = (time: number, turn: number, what: T): void => {
    let place = 0;
    for (let child = 1; child < whats.length; child = 2 * place + 1) {
      if (child + 1 < whats.length && isBefore(at(times, child + 1), at(turns, child + 1), child)) child++;
      if (isBefore(time, turn, child)) break;
      move(child, place);
      place = child;
    }
    put(place, time, turn, what);
  };
  return {
    add: (time, what) => {
      let place = whats.length;
      if (place === times.length) [times, turns] = [twice(times), twice(turns)];
      const turn = added++;
      while (place > 0) {
        const parent = (place - 1) >> 1;
        if (!isBefore(time, turn, parent)) break;
        move(parent, place);
        place = parent;
      }
      put(place, time, turn, what);
    },
    next: () => {
      const last = whats.length - 1;
      if (last < 0) return null;
      const first = { time: at(times, 0), what: at(whats, 0) };
      const what = whats.pop();
      invariant(what !== undefined, "a calendar has no empty events");
      if (last > 0) sink(at(times, last), at(turns, last), what);
      return first;
    },
  };
}

function twice(array: Float64Array): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(2 * array.length);
  longer.set(array);
  return longer;
}
