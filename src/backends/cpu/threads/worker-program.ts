/**
 * A Program as one worker runs it: kernels compiled for the shared memory, its own scratch, and the loop over ready
 * queues.
 */
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { createKernelLibrary } from "../../../kernels/kernel-library.ts";
import type { Execution, Observer, Sharing } from "../../../machine/execution.ts";
import { createTables } from "../../../machine/tables.ts";
import { createRandom } from "../../../support/random.ts";
import { libraryGemms } from "../blas/blas-gemms.ts";
import { type CpuCompute, createCompute, type SavedBytes } from "../compute.ts";
import { numberCommands } from "./command-numbers.ts";
import { now } from "./command-numbers.ts";
import type { SharedProgram, WorkerFailure, WorkerIdentity } from "./messages.ts";
import { createPartRunner } from "./part-runner.ts";
import { currentCommand } from "./command-numbers.ts";
import { abortSchedule, createScheduler, wakeQueue } from "./scheduler.ts";
import { shareWorks } from "./shared-works.ts";
import { runQueues } from "./worker-loop.ts";

export interface WorkerProgram {
  /** Takes part in one run. Returns when the run is over for this worker, with the failure on this worker, if any. */
  readonly run: (traced: boolean) => WorkerFailure | null;
}

export function createWorkerProgram(
  shared: SharedProgram,
  { number: worker, workers, jitter }: WorkerIdentity,
): WorkerProgram {
  const { program, memory, space, state, schedule, board, running, times, turns } = shared;
  const tables = createTables(program, "streams");
  const numbers = numberCommands(program);
  const scheduler = createScheduler(schedule, tables.queues.length);
  const { address, bytes } = space.scratch;
  const library = createKernelLibrary({
    memory,
    scratch: { address: address + worker * bytes, bytes },
    ...libraryGemms(shared.blas, memory.buffer),
  });
  const work = { heavy: false };
  const current = currentCommand(running, worker);
  const compute = createCompute(program, space, library, new Uint8Array(memory.buffer));
  const parts = createPartRunner({
    shared: shareWorks(tables, numbers, workers),
    numbers,
    space,
    library,
    compute,
    board,
    scheduler,
    worker,
    current,
  });
  let traced = false;
  const observer: Observer = {
    start: (rank, command) => {
      const number = numbers.numberOf(rank, command);
      current.command = number;
      if (traced) times[2 * number] = now();
    },
    moved: (rank, command) => {
      if (traced) times[2 * numbers.numberOf(rank, command) + 1] = now();
    },
    end: (rank, command) => {
      const word = 2 * numbers.numberOf(rank, command) + 1;
      // A transfer's time starts when its data has moved.
      if (traced && times[word] === 0) times[word] = now();
    },
  };
  const execution: Execution<SavedBytes> = {
    tables,
    state,
    compute: marking(compute, work),
    observer,
    sharing: markingShared(parts, work),
    eager: null,
    wake: (queue) => wakeQueue(scheduler, queue),
  };
  const wasHeavy = (): boolean => {
    const { heavy } = work;
    work.heavy = false;
    return heavy;
  };
  const help = (): boolean => {
    const helped = parts.help();
    current.command = -1;
    return helped;
  };
  const pause = jitter === null ? () => {} : createJitter(jitter + worker);
  return {
    run: (wanted) => {
      traced = wanted;
      try {
        runQueues({ execution, scheduler, turns, wasHeavy, pause, help, canHelp: parts.canHelp });
        return null;
      } catch (error) {
        abortSchedule(scheduler);
        return { at: current.command === -1 ? null : numbers.placeOf(current.command), ...failureOf(error) };
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

/** Records that a step moved or computed data. */
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

function markingShared(sharing: Sharing, work: { heavy: boolean }): Sharing {
  const mark = (shared: boolean): boolean => {
    work.heavy ||= shared;
    return shared;
  };
  return {
    command: (rank, command) => mark(sharing.command(rank, command)),
    phase: (phase) => mark(sharing.phase(phase)),
  };
}

export function failureOf(error: unknown): Pick<WorkerFailure, "diagnostics" | "text"> {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { diagnostics: error instanceof DiagnosticError ? error.diagnostics : null, text };
}
