import { invariant } from "../support/invariant.ts";

/** One command's execution by a back end's clock. Times are milliseconds from the start of the run. */
export interface TraceEvent {
  readonly rank: number;
  readonly stream: number;
  /** Index in the rank's command list. */
  readonly command: number;
  readonly start: number;
  /** For a transfer: when its data had moved, if the back end knows; its stream may continue later. */
  readonly end: number;
  /**
   * For a waitEvent or waitSignal, if the back end knows: when its stream reached it; `start` is when it could
   * continue. If absent: when the command before ended.
   */
  readonly reached?: number;
}

/** The zero of a rank's times on a clock that the ranks share: each GPU has its own clock. */
export interface TraceOrigin {
  readonly rank: number;
  /** Milliseconds. */
  readonly at: number;
  /** The largest error of `at`, in milliseconds. */
  readonly error: number;
}

// Trace events as numbers, which ranks in separate processes send each other.

const numbersPerEvent = 6;

export function numbersOfEvents(events: readonly TraceEvent[]): readonly number[] {
  return events.flatMap(({ rank, stream, command, start, end, reached = NaN }) => [
    rank,
    stream,
    command,
    start,
    end,
    reached,
  ]);
}

export function eventsOfNumbers(numbers: ArrayLike<number>): readonly TraceEvent[] {
  invariant(numbers.length % numbersPerEvent === 0, "events come whole", { numbers: numbers.length });
  return Array.from({ length: numbers.length / numbersPerEvent }, (_, event) => {
    const number = (i: number): number => numbers[event * numbersPerEvent + i] ?? NaN;
    const unpacked = { rank: number(0), stream: number(1), command: number(2), start: number(3), end: number(4) };
    return Number.isNaN(number(5)) ? unpacked : { ...unpacked, reached: number(5) };
  });
}
