/**
 * Counts the bytes that two regions share, exactly. Both are nested strided runs (src/commands/region.ts), so their
 * outermost dims are compared together. With equal strides, at most two relative positions of the inner blocks can
 * overlap, since a block never extends past its stride. With different strides, the coarser region's blocks are
 * compared one by one with the other region.
 *
 *   columns 0-3 and 4-7 of a row-major [1000, 8] tensor: their intervals overlap, but they share no byte; one step shows it
 */
import type { RegionDim } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";

/** Strided runs from `start`, in bytes. */
export interface Extent {
  readonly start: number;
  readonly dims: readonly RegionDim[];
  readonly bytes: number;
}

/** Bytes from the first to the last. */
export function spanOf({ dims, bytes }: Pick<Extent, "dims" | "bytes">): number {
  let span = bytes;
  for (const { count, stride } of dims) span += (count - 1) * stride;
  return bytes === 0 ? 0 : span;
}

/**
 * The number of bytes that both contain. Takes at most one step per run of the coarser region, and a few steps if
 * strides are equal.
 */
export function sharedBytes(a: Extent, b: Extent): number {
  const distance = b.start - a.start;
  if (a.dims.length === 0 && b.dims.length === 0) return runsShare(distance, a.bytes, b.bytes);
  if (neverMeet(distance, a, b)) return 0;
  return shared(distance, a, 0, b, 0);
}

function runsShare(distance: number, a: number, b: number): number {
  return Math.max(0, Math.min(a, distance + b) - Math.max(0, distance));
}

/** By remainders: all runs of a region start at the same offset modulo the common divisor of all strides. */
function neverMeet(distance: number, a: Extent, b: Extent): boolean {
  let divisor = 0;
  for (const { stride } of a.dims) divisor = greatestDivisor(divisor, stride);
  for (const { stride } of b.dims) divisor = greatestDivisor(divisor, stride);
  const place = ((distance % divisor) + divisor) % divisor;
  return a.bytes <= place && place + b.bytes <= divisor;
}

function greatestDivisor(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}

/**
 * The number of bytes shared by `a` from dim `i` on and `b` from dim `j` on, where b starts `distance` bytes after a.
 */
function shared(distance: number, a: Extent, i: number, b: Extent, j: number): number {
  const outerA = a.dims[i];
  const outerB = b.dims[j];
  if (outerA === undefined && outerB === undefined) return runsShare(distance, a.bytes, b.bytes);
  if (outerB === undefined || (outerA !== undefined && outerA.stride > outerB.stride)) {
    return walked(distance, a, i, b, j);
  }
  if (outerA === undefined || outerB.stride > outerA.stride) return walked(-distance, b, j, a, i);
  const { stride } = outerA;
  const [spanA, spanB] = [restSpan(a, i + 1), restSpan(b, j + 1)];
  // Block n of a and block n + k of b are `distance + k * stride` apart.
  const first = Math.max(Math.floor((-spanB - distance) / stride) + 1, 1 - outerA.count);
  const last = Math.min(Math.ceil((spanA - distance) / stride) - 1, outerB.count - 1);
  let bytes = 0;
  for (let k = first; k <= last; k++) {
    const pairs = Math.min(outerA.count, outerB.count - k) - Math.max(0, -k);
    if (pairs > 0) bytes += pairs * shared(distance + k * stride, a, i + 1, b, j + 1);
  }
  return bytes;
}

/** Compares each block of a's outermost dim that reaches into b. */
function walked(distance: number, a: Extent, i: number, b: Extent, j: number): number {
  const { count, stride } = at(a.dims, i);
  const [inner, span] = [restSpan(a, i + 1), restSpan(b, j)];
  const first = Math.max(0, Math.floor((distance - inner) / stride) + 1);
  const last = Math.min(count - 1, Math.ceil((distance + span) / stride) - 1);
  let bytes = 0;
  for (let k = first; k <= last; k++) bytes += shared(distance - k * stride, a, i + 1, b, j);
  return bytes;
}

function restSpan({ dims, bytes }: Extent, from: number): number {
  let span = bytes;
  for (let i = from; i < dims.length; i++) {
    const { count, stride } = at(dims, i);
    span += (count - 1) * stride;
  }
  return span;
}
