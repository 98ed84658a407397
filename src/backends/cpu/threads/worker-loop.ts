/**
 * A worker's part in a run: it steps ready queues until nothing is left. It runs one heavy command or up to 16 cheap
 * ones of a queue, then requeues it.
 */
import type { Execution } from "../../../machine/execution.ts";
import type { SavedBytes } from "../compute.ts";
import { step } from "../../../machine/step.ts";
import {
  awaitWork,
  enterRun,
  finishQueue,
  isOver,
  parkQueue,
  requeue,
  type Scheduler,
  takeQueue,
} from "./scheduler.ts";

const cheapCommands = 16;

/** Checks of the ring before sleeping: about 50 us. Waking a sleeping worker takes about as long. */
const spins = 2_000;

export interface WorkerRun {
  readonly execution: Execution<SavedBytes>;
  readonly scheduler: Scheduler;
  /** As in SharedProgram. */
  readonly turns: Int32Array;
  /** Whether the last step moved or computed data; such a step counts as 16 cheap commands. */
  readonly wasHeavy: () => boolean;
  /** Called before every step; tests use it to make threads lag. */
  readonly pause: () => void;
  /** Helps with another worker's command; returns false if there is none. */
  readonly help: () => boolean;
  readonly canHelp: () => boolean;
}

/** Returns when the run is over. Throws what a step throws. */
export function runQueues(run: WorkerRun): void {
  const { scheduler } = run;
  enterRun(scheduler);
  while (!isOver(scheduler)) {
    const queue = takeQueue(scheduler);
    if (queue !== null) runQueue(run, queue);
    else if (!run.help()) awaitWork(scheduler, spins, run.canHelp);
  }
}

function runQueue({ execution, scheduler, turns, wasHeavy, pause }: WorkerRun, queue: number): void {
  turns[queue] = turns[turns.length - 1] ?? 0;
  let budget = cheapCommands;
  while (budget > 0) {
    pause();
    const result = step(execution, queue);
    if (result === "end") return finishQueue(scheduler, queue);
    if (result === "blocked") {
      if (parkQueue(scheduler, queue)) return;
    } else if (isOver(scheduler)) {
      return;
    } else {
      budget -= wasHeavy() ? cheapCommands : 1;
    }
  }
  requeue(scheduler, queue);
}
