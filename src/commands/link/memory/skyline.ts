/**
 * The height of a stack at each of `length` positions. Something that is put on a range of positions lies level, on the
 * highest point of the range. A segment tree makes a put take O(log length), however long the range is.
 *
 *   put(0, 1, 3) = 0, put(1, 2, 2) = 3 (on the first), put(0, 0, 1) = 3
 */
import { at } from "../../../support/invariant.ts";

export interface Skyline {
  /** Puts something of `size` on positions `first` to `last`, both included; returns the height at which it lies. */
  readonly put: (first: number, last: number, size: number) => number;
}

export function createSkyline(length: number): Skyline {
  // For node i: the highest point below it, and a height that all positions below it reach.
  const highest = new Float64Array(2 * length);
  const floor = new Float64Array(2 * length);
  const heightOver = (first: number, last: number): number => {
    let height = 0;
    for (let [low, high] = [first + length, last + length + 1]; low < high; low >>= 1, high >>= 1) {
      if (low % 2 === 1) height = Math.max(height, at(highest, low++));
      if (high % 2 === 1) height = Math.max(height, at(highest, --high));
    }
    for (let node = first + length; node > 0; node >>= 1) height = Math.max(height, at(floor, node));
    for (let node = last + length; node > 0; node >>= 1) height = Math.max(height, at(floor, node));
    return height;
  };
  const raise = (first: number, last: number, height: number): void => {
    // What is put on a range is higher than everything there.
    const raiseNode = (node: number): void => {
      highest[node] = height;
      floor[node] = height;
    };
    for (let [low, high] = [first + length, last + length + 1]; low < high; low >>= 1, high >>= 1) {
      if (low % 2 === 1) raiseNode(low++);
      if (high % 2 === 1) raiseNode(--high);
    }
    for (const end of [first + length, last + length]) {
      for (let node = end >> 1; node > 0; node >>= 1) highest[node] = Math.max(at(highest, node), height);
    }
  };
  return {
    put: (first, last, size) => {
      const height = heightOver(first, last);
      if (size > 0) raise(first, last, height + size);
      return height;
    },
  };
}
