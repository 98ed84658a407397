/** Figures of measurements, as benchmarks and scripts for GPUs print them. */
import { cpus } from "node:os";
import process from "node:process";

/** NaN of no values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

export function wholeMedian(values: readonly number[]): number {
  return Math.round(median(values));
}

/** The median, the least and the most. */
export function spread(values: readonly number[]): string {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)].map((each) =>
    each.toFixed(3),
  );
  return `${middle} (${least} to ${most})`;
}

export function secondsSince(start: number): string {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

export function cpuLine(): string {
  return `${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, Node ${process.versions.node}`;
}
