/**
 * Finds accesses to bytes of one arena without looking at all of them. Accesses are in bins: aligned ranges of 2^level
 * bytes, each in the smallest that holds all of it. A look-up visits the bins that overlap its bytes.
 */
import type { Runs } from "./regions-meet.ts";

type Bytes = Pick<Runs, "start" | "end">;

/** Bins by the aligned range that they stand for; `Bin` is what one holds. */
export interface Bins<Bin> {
  /** The bin of these bytes, made if there is none; null for no bytes, which meet nothing. */
  readonly binOf: (touch: Bytes) => Bin | null;
  /** Calls `visit` with the bins that overlap, until it returns true; whether it did. */
  readonly some: (touch: Bytes, visit: (bin: Bin) => boolean) => boolean;
}

export function createBins<Bin>(create: () => Bin): Bins<Bin> {
  const levels = new Map<number, Map<number, Bin>>();
  return {
    binOf: ({ start, end }) => {
      if (end <= start) return null;
      let width = 1;
      while (Math.floor(start / width) !== Math.floor((end - 1) / width)) width *= 2;
      const bins = levels.get(width) ?? new Map<number, Bin>();
      levels.set(width, bins);
      const number = Math.floor(start / width);
      const bin = bins.get(number) ?? create();
      bins.set(number, bin);
      return bin;
    },
    some: ({ start, end }, visit) => {
      for (const [width, bins] of levels) {
        const [first, last] = [Math.floor(start / width), Math.floor((end - 1) / width)];
        if (last - first < bins.size) {
          for (let number = first; number <= last; number++) {
            const bin = bins.get(number);
            if (bin !== undefined && visit(bin)) return true;
          }
        } else {
          for (const [number, bin] of bins) if (number >= first && number <= last && visit(bin)) return true;
        }
      }
      return false;
    },
  };
}

export interface TouchIndex<T> {
  readonly add: (touch: Bytes, value: T) => void;
  /** Calls `visit` with the values whose bytes may overlap, until it returns true; whether it did. */
  readonly some: (touch: Bytes, visit: (value: T) => boolean) => boolean;
  /** Removes the values whose bytes lie within. */
  readonly removeWithin: (touch: Bytes) => void;
}

interface Entry<T> extends Bytes {
  readonly value: T;
}

export function createTouchIndex<T>(): TouchIndex<T> {
  const bins = createBins<{ entries: Entry<T>[] }>(() => ({ entries: [] }));
  return {
    add: ({ start, end }, value) => {
      bins.binOf({ start, end })?.entries.push({ start, end, value });
    },
    some: (touch, visit) =>
      bins.some(touch, ({ entries }) =>
        entries.some((entry) => entry.start < touch.end && touch.start < entry.end && visit(entry.value)),
      ),
    removeWithin: (touch) => {
      bins.some(touch, (bin) => {
        const isLeft = ({ start, end }: Entry<T>): boolean => start < touch.start || touch.end < end;
        if (!bin.entries.every(isLeft)) bin.entries = bin.entries.filter(isLeft);
        return false;
      });
    },
  };
}
