/** An access of a command to the memory of a rank, and what two of them have in common. */
import { regionsMeet, type Runs } from "./regions-meet.ts";

export interface Touch extends Runs {
  /** The rank that owns the memory. */
  readonly rank: number;
  /** A number for each arena of each rank. */
  readonly place: number;
  readonly writes: boolean;
}

export function touchesMeet(a: Touch, b: Touch): boolean {
  return a.place === b.place && regionsMeet(a, b);
}

/** Whether `outer` is contiguous and has all bytes of `inner`. */
export function covers(outer: Touch, inner: Touch): boolean {
  return outer.place === inner.place && outer.dims.length === 0 && outer.start <= inner.start && inner.end <= outer.end;
}

/** Whether both are the same bytes in the same nesting. False if two nestings of one set of bytes differ. */
export function sameBytes(a: Touch, b: Touch): boolean {
  if (a.place !== b.place || a.start !== b.start || a.end !== b.end || a.bytes !== b.bytes) return false;
  return JSON.stringify(a.dims) === JSON.stringify(b.dims);
}

/** Whether two commands share a byte that one of them writes, so that their order matters. */
export function conflict(a: readonly Touch[], b: readonly Touch[]): boolean {
  return a.some((one) => b.some((other) => (one.writes || other.writes) && touchesMeet(one, other)));
}
