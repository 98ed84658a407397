/** Trace events as numbers, which ranks in separate processes send each other. */
import { invariant } from "../support/invariant.ts";
import type { TraceEvent } from "./event.ts";

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
