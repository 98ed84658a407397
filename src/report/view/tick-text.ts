/** The texts of a time axis. */
import type { TimelineData } from "../data/timeline-data.ts";

/** `end`: of the timeline; `between`: from one tick to the next. Empty for parts of a step. */
export function tickText(
  { data, end }: { readonly data: Pick<TimelineData, "unit">; readonly end: number },
  time: number,
  between: number,
): string {
  if (data.unit === "steps") return Number.isInteger(time) ? String(time) : "";
  // As many digits as tell neighbouring ticks apart.
  const [factor, unit] = end < 1 ? [1000, "us"] : [1, "ms"];
  const digits = Math.max(0, Math.ceil(1 - Math.log10(factor * between)));
  return `${(factor * time).toFixed(Math.min(digits, 6))} ${unit}`;
}
