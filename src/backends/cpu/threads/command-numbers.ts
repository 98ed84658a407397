/**
 * Numbers the commands of all ranks of a Program consecutively, so that one word names a command. Threads share, by
 * these numbers, the command that each worker is running and the times at which commands started and ended.
 */
import type { Program } from "../../../commands/program.ts";
import { at } from "../../../support/invariant.ts";
import type { TraceEvent } from "../../../trace/event-table.ts";

export interface CommandNumbers {
  readonly count: number;
  readonly numberOf: (rank: number, command: number) => number;
  readonly placeOf: (number: number) => { readonly rank: number; readonly command: number };
}

export function numberCommands({ ranks }: Program): CommandNumbers {
  const bases: number[] = [];
  let count = 0;
  for (const { commands } of ranks) {
    bases.push(count);
    count += commands.length;
  }
  return {
    count,
    numberOf: (rank, command) => at(bases, rank) + command,
    placeOf: (number) => {
      const rank = bases.findLastIndex((base) => base <= number);
      return { rank, command: number - at(bases, rank) };
    },
  };
}

/**
 * The command that each worker is running, in shared memory. If a worker dies silently, this tells which command it was
 * running. One cache line per worker. A word holds a command's number plus 1; 0 is none.
 */
const lineWords = 16;

export function runningWords(workers: number): number {
  return lineWords * workers;
}

/** A worker's word as a property: the number of a command, or -1 for none. */
export function currentCommand(running: Int32Array, worker: number): { command: number } {
  const word = lineWords * worker;
  return {
    get command() {
      return at(running, word) - 1;
    },
    set command(command) {
      running[word] = command + 1;
    },
  };
}

/**
 * One monotonic clock for all threads of the process, because a transfer may start on one thread and end on another.
 */
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
