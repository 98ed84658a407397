/** A Program as one worker runs it: kernels compiled for the shared memory, scratch of its own, and the loop over ready queues. */
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { createKernelLibrary } from "../../../kernels/kernel-library.ts";
import type { Execution, Observer } from "../../../machine/execution.ts";
import { createTables } from "../../../machine/tables.ts";
import { createRandom } from "../../../support/random.ts";
import { libraryProducts } from "../blas/library-products.ts";
import { type CpuCompute, createCompute, type SavedBytes } from "../compute.ts";
import { commandNumbering, now } from "./command-times.ts";
import type { SharedProgram, WorkerFailure, WorkerIdentity } from "./messages.ts";
import { createPartRunner } from "./part-runner.ts";
import { abortSchedule, createScheduler, wakeQueue } from "./scheduler.ts";
import { runQueues } from "./worker-loop.ts";

export interface WorkerProgram {
  /** Takes part in one run; returns when it is over for this worker, with what went wrong here. */
  readonly run: (traced: boolean) => WorkerFailure | null;
}

export function createWorkerProgram(
  shared: SharedProgram,
  { number: worker, workers, jitter }: WorkerIdentity,
): WorkerProgram {
  const { program, memory, space, state, schedule, board, times } = shared;
  const tables = createTables(program, "streams");
  const scheduler = createScheduler(schedule, tables.queues.length);
  const { address, bytes } = space.scratch;
  const library = createKernelLibrary({
    memory,
    scratch: { address: address + worker * bytes, bytes },
    ...libraryProducts(shared.blas, memory.buffer),
  });
  const work = { heavy: false };
  let current = { rank: 0, command: 0 };
  const whole = createCompute(program, space, library, new Uint8Array(memory.buffer));
  const parts = createPartRunner({ program, space, library, board, scheduler, worker, workers });
  const launch: CpuCompute["launch"] = (rank, command) => {
    if (!parts.launch(rank, command, current.command)) whole.launch(rank, command);
  };
  const compute = marking({ ...whole, launch }, work);
  const numberOf = commandNumbering(program);
  let traced = false;
  const observer: Observer = {
    start: (rank, command) => {
      current = { rank, command };
      if (traced) times[2 * numberOf(rank, command)] = now();
    },
    end: (rank, command) => {
      if (traced) times[2 * numberOf(rank, command) + 1] = now();
    },
  };
  const wake = (queue: number): void => wakeQueue(scheduler, queue);
  const execution: Execution<SavedBytes> = { tables, state, compute, observer, eager: null, wake };
  const wasHeavy = (): boolean => {
    const { heavy } = work;
    work.heavy = false;
    return heavy;
  };
  const pause = jitter === null ? () => {} : createJitter(jitter + worker);
  return {
    run: (wanted) => {
      traced = wanted;
      try {
        runQueues({ execution, scheduler, wasHeavy, pause, help: parts.help, canHelp: parts.canHelp });
        return null;
      } catch (error) {
        abortSchedule(scheduler);
        return { ...current, ...failureOf(error) };
      }
    },
  };
}

/** Spins for up to 100 us before about every eighth step. */
function createJitter(seed: number): () => void {
  const random = createRandom(seed);
  return () => {
    if (random.integer(8) !== 0) return;
    const end = performance.now() + random.float() / 10;
    while (performance.now() < end);
  };
}

/** Notes that a step moved or computed data. */
function marking(compute: CpuCompute, work: { heavy: boolean }): CpuCompute {
  return {
    ...compute,
    launch: (rank, command) => {
      work.heavy = true;
      compute.launch(rank, command);
    },
    copy: (source, destination) => {
      work.heavy = true;
      compute.copy(source, destination);
    },
    combine: (op, sources, destination) => {
      work.heavy = true;
      compute.combine(op, sources, destination);
    },
  };
}

export function failureOf(error: unknown): Pick<WorkerFailure, "diagnostics" | "text"> {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { diagnostics: error instanceof DiagnosticError ? error.diagnostics : null, text };
}
