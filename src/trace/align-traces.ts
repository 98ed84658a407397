/**
 * Events of ranks whose times count from starts of their own, on one axis: each rank's are moved by where its zero lies on the clock that the ranks share. Zero is then the
 * earliest of the zeros.
 */
import type { TraceEvent, TraceOrigin } from "./event.ts";

/** Events of ranks without an origin stay as they are. In order of start. */
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

/** Milliseconds by which times of two ranks may be apart wrongly, at most: the sum of the two largest errors. Null for fewer than two ranks. */
export function alignmentError(origins: readonly TraceOrigin[]): number | null {
  const [first, second] = origins.map(({ error }) => error).toSorted((a, b) => b - a);
  return first === undefined || second === undefined ? null : first + second;
}

/** The same as a field of the Chrome Trace Event format; none for fewer than two ranks. */
export function precisionOf(origins: readonly TraceOrigin[]): { readonly otherData?: { readonly clocks: string } } {
  const error = alignmentError(origins);
  return error === null
    ? {}
    : { otherData: { clocks: `times of different ranks fit within ${microsecondsText(error)}` } };
}

export function microsecondsText(milliseconds: number): string {
  return `${(1000 * milliseconds).toFixed(1)} us`;
}
