/** What each command took in a traced run, where no profile says what it takes alone. */
import type { Program } from "../commands/program.ts";
import type { NetworkUse } from "../simulate/transfer-cost.ts";
import { type TraceEvent, eventTable, movingSince } from "../trace/event-table.ts";

/** Microseconds of a command: before it needs its resources, and for which it holds them. */
export type CommandTime = (
  rank: number,
  index: number,
) => {
  readonly latency: number;
  readonly busy: number;
  /** Of a predicted transfer between hosts. */
  readonly network?: NetworkUse | null;
};

/** Of a transfer, only while its data moves. 0 for commands that were not traced. */
export function measuredCosts(program: Program, trace: readonly TraceEvent[]): CommandTime {
  const eventOf = eventTable(program, trace);
  const moving = movingSince(program, eventOf);
  return (rank, index) => {
    const event = eventOf(rank, index);
    return { latency: 0, busy: event === undefined ? 0 : Math.max(0, 1000 * (event.end - moving(event))) };
  };
}
