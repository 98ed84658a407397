/** The axes along which a strided box is copied, joined to as few as possible. */
import { at } from "../support/invariant.ts";

export interface CopyAxis {
  readonly extent: number;
  /** In bytes. */
  readonly source: number;
  readonly destination: number;
}

/** Axes in bytes, of strides in elements. */
export function copyAxes(
  shape: readonly number[],
  elementBytes: number,
  source: readonly number[],
  destination: readonly number[],
): readonly CopyAxis[] {
  return shape.map((extent, i) => ({
    extent,
    source: at(source, i) * elementBytes,
    destination: at(destination, i) * elementBytes,
  }));
}

/**
 * Drops axes of one element, and merges adjacent axes that step evenly on both sides. The axis with the smallest step
 * becomes innermost.
 */
export function joinAxes(axes: readonly CopyAxis[]): readonly CopyAxis[] {
  const ordered = axes.filter(({ extent }) => extent > 1).toSorted((a, b) => b.destination - a.destination);
  return ordered.reduce<readonly CopyAxis[]>((joined, axis) => {
    const outer = joined.at(-1);
    const joins = outer?.source === axis.source * axis.extent && outer.destination === axis.destination * axis.extent;
    if (!joins) return [...joined, axis];
    return [...joined.slice(0, -1), { ...axis, extent: axis.extent * outer.extent }];
  }, []);
}
