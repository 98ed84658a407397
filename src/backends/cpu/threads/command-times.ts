/**
 * When every command of a run started and ended, in one shared array, since a transfer may start on one thread and end
 * on another. Milliseconds of one clock; 0 means never.
 */
import type { Program } from "../../../commands/program.ts";
import { at } from "../../../support/invariant.ts";
import type { TraceEvent } from "../../../trace/event.ts";
import { numberCommands } from "./command-numbers.ts";

/** One monotonic clock for all threads of the process. */
export function now(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** The commands that ended, in order of start, with times from `origin`. */
export function traceOf(program: Program, times: Float64Array, origin: number): readonly TraceEvent[] {
  const { numberOf } = numberCommands(program);
  const events = program.ranks.flatMap(({ rank, commands }) =>
    commands.flatMap(({ stream }, command): TraceEvent[] => {
      const number = numberOf(rank, command);
      const [start, end] = [at(times, 2 * number), at(times, 2 * number + 1)];
      return end === 0 ? [] : [{ rank, stream, command, start: start - origin, end: end - origin }];
    }),
  );
  return events.toSorted((a, b) => a.start - b.start);
}
