/**
 * Where streams stand, for flight records: the machine's state has it already. Only the time of a stream's last turn is
 * extra, in steps of the main thread's clock, so that workers read none.
 */
import { hasArrived, type Progress } from "../../../machine/execution.ts";
import { commandAt, participantNumber } from "../../../machine/tables.ts";
import { at } from "../../../support/invariant.ts";
import type { FlightStanding } from "../../../trace/flight/flight-record.ts";
import { currentCommand, numberCommands } from "./command-numbers.ts";
import type { SharedProgram } from "./messages.ts";

export const tickMilliseconds = 20;

export function createTurns(queues: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * (queues + 1)));
}

export function tick(turns: Int32Array): void {
  turns[turns.length - 1] = (turns[turns.length - 1] ?? 0) + 1;
}

/** The streams of a rank, with `workers` workers. */
export function standingsOf(
  progress: Progress,
  { program, running, turns }: Pick<SharedProgram, "program" | "running" | "turns">,
  workers: number,
  rank: number,
): readonly FlightStanding[] {
  const { tables, state } = progress;
  const { numberOf } = numberCommands(program);
  const current = new Set(Array.from({ length: workers }, (_, worker) => currentCommand(running, worker).command));
  return at(tables.queueOf, rank).map((queue) => {
    const { commands } = at(tables.queues, queue);
    const cursor = Atomics.load(state, tables.layout.cursors + queue);
    const ended = commands[cursor - 1] ?? -1;
    const next = commands[cursor];
    const ticks = at(turns, turns.length - 1) - at(turns, queue);
    const ago = (ticks * tickMilliseconds) / 1000;
    if (next === undefined) return { begun: ended, ended, orLater: false, ago };
    const begun =
      commandAt(tables, rank, next).kind === "transfer"
        ? hasArrived(progress, participantNumber(tables, rank, next))
        : current.has(numberOf(rank, next));
    return { begun: begun ? next : ended, ended, orLater: false, ago };
  });
}
