/**
 * Puts the events of ranks with separate clocks on one axis: each rank's events move by its zero on the shared clock.
 * The zero of the axis is the earliest zero.
 */
import type { TraceEvent, TraceOrigin } from "./event-table.ts";

/**
 * The events on the shared axis, in order of start, in milliseconds. Events of ranks without an origin keep their
 * times.
 */
export function alignTraces(events: readonly TraceEvent[], origins: readonly TraceOrigin[]): readonly TraceEvent[] {
  const zero = Math.min(...origins.map(({ at }) => at));
  const later = new Map(origins.map(({ rank, at }) => [rank, at - zero]));
  return events
    .map((event) => {
      const by = later.get(event.rank) ?? 0;
      const { start, end, reached } = event;
      const moved = { ...event, start: start + by, end: end + by };
      return reached === undefined ? moved : { ...moved, reached: reached + by };
    })
    .toSorted((a, b) => a.start - b.start);
}

/**
 * The largest error between the times of two ranks, in milliseconds: the sum of the two largest errors. Null for fewer
 * than two ranks.
 */
export function alignmentError(origins: readonly TraceOrigin[]): number | null {
  const [first, second] = origins.map(({ error }) => error).toSorted((a, b) => b - a);
  return first === undefined || second === undefined ? null : first + second;
}

/** The same as a field of `otherData` in the Chrome Trace Event format; absent for fewer than two ranks. */
export function precisionOf(origins: readonly TraceOrigin[]): { readonly clocks?: string } {
  const error = alignmentError(origins);
  return error === null ? {} : { clocks: `times of different ranks fit within ${microsecondsText(error)}` };
}

export function microsecondsText(milliseconds: number): string {
  return `${(1000 * milliseconds).toFixed(1)} us`;
}
