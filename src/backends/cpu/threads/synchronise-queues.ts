/**
 * Continues queues on the main thread as far as their commands only synchronise, so that a message's arrival leads to the
 * next message without a hand-over to a worker and back. Launches, copies and transfers are left to the workers.
 */
import { stepSynchronisation } from "../../../machine/step.ts";
import { now, numberCommands } from "./command-numbers.ts";
import type { SharedProgram } from "./messages.ts";
import type { RunProgress } from "../../../machine/execution.ts";
import { finishQueue, parkQueue, requeue, type Scheduler, takeParked } from "./scheduler.ts";

/** Continues the queues if they are parked, and all queues that they unblock. Throws what a step throws. */
export type SynchroniseQueues = (scheduler: Scheduler, queues: readonly number[]) => void;

export function createSynchroniseQueues(
  { program, times, turns }: Pick<SharedProgram, "program" | "times" | "turns">,
  progress: RunProgress,
): SynchroniseQueues {
  const { numberOf } = numberCommands(program);
  const woken: number[] = [];
  const synchronisation = {
    ...progress,
    observer: {
      start: (rank: number, command: number): void => void (times[2 * numberOf(rank, command)] = now()),
      end: (rank: number, command: number): void => void (times[2 * numberOf(rank, command) + 1] = now()),
    },
    wake: (queue: number): void => void woken.push(queue),
  };
  return (scheduler, queues) => {
    woken.push(...queues);
    for (let queue = woken.pop(); queue !== undefined; queue = woken.pop()) {
      if (takeParked(scheduler, queue)) run(scheduler, queue);
    }
  };

  function run(scheduler: Scheduler, queue: number): void {
    turns[queue] = turns[turns.length - 1] ?? 0;
    for (;;) {
      const result = stepSynchronisation(synchronisation, queue);
      if (result === "end") return finishQueue(scheduler, queue);
      if (result === "data") return requeue(scheduler, queue);
      if (result === "blocked" && parkQueue(scheduler, queue)) return;
    }
  }
}
