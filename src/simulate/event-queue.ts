/**
 * Future events by time; events at the same time come first in, first out. A binary heap whose times and turns are
 * typed arrays, so that an event makes no garbage. Most events are added at the time of the one that was taken last:
 * they wait in a list of their own, after all that were in the heap at that time.
 */
import { invariant } from "../support/invariant.ts";

export interface Calendar<T> {
  add(time: number, what: T): void;
  /** Removes and returns the first; null if nothing is left. */
  next(): T | null;
  /** The time of the one that was taken last. */
  time(): number;
}

export function createCalendar<T>(): Calendar<T> {
  let times = new Float64Array(64);
  /** The number of events that were added earlier. */
  let turns = new Float64Array(64);
  const whats: T[] = [];
  let added = 0;
  /** Events at `now`, in order; those before `first` are past. */
  const soon: T[] = [];
  let [now, first, taken] = [-Infinity, 0, -Infinity];
  const isBefore = (time: number, turn: number, place: number): boolean => {
    const other = times[place] ?? 0;
    return time < other || (time === other && turn < (turns[place] ?? 0));
  };
  const put = (place: number, time: number, turn: number, what: T): void => {
    times[place] = time;
    turns[place] = turn;
    whats[place] = what;
  };
  const move = (from: number, to: number): void => {
    const what = whats[from];
    invariant(what !== undefined, "a calendar has no empty events");
    put(to, times[from] ?? 0, turns[from] ?? 0, what);
  };
  /** Puts an event in the place of the first. */
  const sink = (time: number, turn: number, what: T): void => {
    let place = 0;
    for (let child = 1; child < whats.length; child = 2 * place + 1) {
      if (child + 1 < whats.length && isBefore(times[child + 1] ?? 0, turns[child + 1] ?? 0, child)) child++;
      if (isBefore(time, turn, child)) break;
      move(child, place);
      place = child;
    }
    put(place, time, turn, what);
  };
  return {
    add: (time, what) => {
      if (time === now) {
        soon.push(what);
        return;
      }
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
      const earliest = last < 0 ? Infinity : (times[0] ?? 0);
      if (first < soon.length && now < earliest) {
        const what = soon[first++];
        invariant(what !== undefined, "a calendar has no empty events");
        if (first === soon.length) first = soon.length = 0;
        taken = now;
        return what;
      }
      const [top, what] = [whats[0], whats.pop()];
      if (top === undefined || what === undefined) return null;
      if (last > 0) sink(times[last] ?? 0, turns[last] ?? 0, what);
      if (soon.length === 0) now = earliest;
      taken = earliest;
      return top;
    },
    time: () => taken,
  };
}

function twice(array: Float64Array): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(2 * array.length);
  longer.set(array);
  return longer;
}
