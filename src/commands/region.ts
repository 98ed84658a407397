/**
 * A Region is the exact set of bytes that a command reads or writes in one buffer: an offset and nested
 * strided runs. Canonical form (see `canonicalRegion`): no dims of count 1 or stride 0, neighbouring dims that
 * join are merged, strides descend, no byte is named twice. Two equal sets made by the same nesting compare equal.
 */
import type { BufferId } from "./buffer.ts";

export interface RegionDim {
  readonly count: number;
  /** In bytes. */
  readonly stride: number;
}

export interface Region {
  readonly buffer: BufferId;
  /** In bytes from the start of the buffer. */
  readonly offset: number;
  readonly dims: readonly RegionDim[];
  /** The contiguous bytes at each point of `dims`: the innermost run. */
  readonly bytes: number;
}
