/** Indices of slices: what is in range, and where they are ignored. */
import type { IterDomain } from "../ir/domain.ts";
import { fail, type Recorder } from "./recorder.ts";

/**
 * The index to select along an axis of `size` elements at `position`. A broadcast axis, and one of one element, are read at 0
 * whatever the index, as nvFuser does. Throws `index-out-of-range`.
 */
export function indexInto(recorder: Recorder, axis: IterDomain, size: number, index: number, position: number): number {
  if (axis.iterType === "broadcast" || size === 1) return 0;
  if (index >= 0 && index < size) return index;
  return outOfRange(recorder, `index ${index}`, position, size);
}

export function outOfRange(recorder: Recorder, found: string, position: number, size: number): never {
  return fail(recorder, {
    code: "index-out-of-range",
    message: `a slice lies outside axis ${position}`,
    found,
    expected: `indices from 0 to ${size - 1}`,
    help: "correct the index, or the bounds of the loop that it comes from",
  });
}
