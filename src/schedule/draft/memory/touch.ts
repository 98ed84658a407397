/** An access of a command to the memory of a rank, and what two of them have in common. */
import type { RegionDim } from "../../../commands/region.ts";
import { at } from "../../../support/invariant.ts";

export interface Touch extends ByteRuns {
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
export function touchesConflict(a: readonly Touch[], b: readonly Touch[]): boolean {
  return a.some((one) => b.some((other) => (one.writes || other.writes) && touchesMeet(one, other)));
}

// Whether two sets of strided runs share a byte, exactly. The verifier has separate arithmetic for this: it must find
// mistakes of rewrites, so the two share no code.
//
//   columns 0-3 and 4-7 of a row-major [1000, 8] tensor: their intervals overlap, but they share no byte

/** Strided runs in the bytes [start, end). Dims as in a Region, in descending order of stride. */
export interface ByteRuns {
  readonly start: number;
  readonly end: number;
  readonly dims: readonly RegionDim[];
  /** The contiguous bytes at each point of `dims`. */
  readonly bytes: number;
}

export function byteRunsOf(start: number, dims: readonly RegionDim[], bytes: number): ByteRuns {
  return { start, end: start + reach(dims, 0, bytes), dims, bytes };
}

function regionsMeet(a: ByteRuns, b: ByteRuns): boolean {
  if (a.end <= b.start || b.end <= a.start) return false;
  if (a.dims.length === 0 && b.dims.length === 0) return a.bytes > 0 && b.bytes > 0;
  return blocksMeet(b.start - a.start, a, 0, b, 0);
}

/** The number of bytes from the first to the last byte of the dims from `from` on. */
function reach(dims: readonly RegionDim[], from: number, bytes: number): number {
  let last = bytes;
  for (let i = from; i < dims.length; i++) last += (at(dims, i).count - 1) * at(dims, i).stride;
  return last;
}

/** Compares `a` from dim `i` on with `b` from dim `j` on, where b starts `distance` bytes after a. */
function blocksMeet(distance: number, a: ByteRuns, i: number, b: ByteRuns, j: number): boolean {
  const outerA = a.dims[i];
  const outerB = b.dims[j];
  if (outerA === undefined && outerB === undefined) return distance < a.bytes && -distance < b.bytes;
  if (outerA === undefined || (outerB !== undefined && outerB.stride > outerA.stride)) {
    return blocksMeet(-distance, b, j, a, i);
  }
  const { count, stride } = outerA;
  const inner = reach(a.dims, i + 1, a.bytes);
  if (outerB?.stride === stride) {
    // Block n of a and block n + k of b are `distance + k * stride` apart for every n.
    const first = Math.max(1 - count, Math.floor((-reach(b.dims, j + 1, b.bytes) - distance) / stride) + 1);
    const last = Math.min(outerB.count - 1, Math.ceil((inner - distance) / stride) - 1);
    for (let k = first; k <= last; k++) if (blocksMeet(distance + k * stride, a, i + 1, b, j + 1)) return true;
    return false;
  }
  const first = Math.max(0, Math.floor((distance - inner) / stride) + 1);
  const last = Math.min(count - 1, Math.ceil((distance + reach(b.dims, j, b.bytes)) / stride) - 1);
  for (let k = first; k <= last; k++) if (blocksMeet(distance - k * stride, a, i + 1, b, j)) return true;
  return false;
}
