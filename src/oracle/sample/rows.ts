/** Which rows of large outputs are compared. */
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import type { Random } from "../../support/random.ts";
import { isWholeSample, type Sample, wholeSample } from "./sample.ts";

/** Outputs of up to so many elements are compared whole. */
const wholeElements = 2 ** 18;
/** About the elements of a sample, and its least number of rows. */
const [sampledElements, leastRows] = [2 ** 17, 64];

/**
 * Rows along the last axis, spread over all other axes: one at random in each of equal ranges, so that every device and
 * chunk has some. Short axes stay whole first. A vector's elements are its rows.
 */
export function sampleRows(shape: readonly number[], random: Random): Sample {
  if (elementCount(shape) <= wholeElements) return wholeSample(shape);
  const isVector = shape.length === 1;
  const columns = isVector ? 1 : at(shape, shape.length - 1);
  const axes = shape.map((extent, axis) => ({ extent, axis })).slice(0, isVector ? 1 : -1);
  let rows = Math.max(leastRows, Math.floor(sampledElements / columns));
  const counts = new Map<number, number>();
  axes
    .toSorted((a, b) => a.extent - b.extent)
    .forEach(({ extent, axis }, i) => {
      const count = Math.max(1, Math.min(extent, Math.floor(rows ** (1 / (axes.length - i)) + 1e-9)));
      counts.set(axis, count);
      rows /= count;
    });
  return shape.map((extent, axis) => {
    const count = counts.get(axis) ?? extent;
    if (count === extent) return null;
    const start = (range: number): number => Math.floor((range * extent) / count);
    return Array.from({ length: count }, (_, i) => start(i) + random.integer(start(i + 1) - start(i)));
  });
}

/** How many rows of how many are in a sample; null if all are. */
export function sampledRows(
  sample: Sample,
  shape: readonly number[],
): { readonly compared: number; readonly of: number } | null {
  if (isWholeSample(sample)) return null;
  const rows = shape.length === 1 ? shape : shape.slice(0, -1);
  const product = (counts: readonly number[]): number => counts.reduce((all, count) => all * count, 1);
  return { compared: product(rows.map((extent, axis) => at(sample, axis)?.length ?? extent)), of: product(rows) };
}
