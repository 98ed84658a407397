/**
 * A Program as one worker runs it: kernels compiled for the shared memory, its own scratch, and the loop over ready
 * queues.
 */
import type { Launch } from "../../../commands/command.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { createKernelLibrary, type KernelLibrary, type PreparedKernel } from "../../../kernels/kernel-library.ts";
import type { KernelPart } from "../../../kernels/nests/split-kernel.ts";
import type { Compute, Execution, Observer, Sharing } from "../../../machine/execution.ts";
import { step } from "../../../machine/step.ts";
import { createMachineTables } from "../../../machine/tables.ts";
import { performMoves } from "../../../machine/transfers/arrival.ts";
import { at, invariant, unreachable } from "../../../support/invariant.ts";
import { createRandom } from "../../../support/random.ts";
import type { AddressSpace } from "../address-space.ts";
import { libraryGemms } from "../blas/blas-gemms.ts";
import { type CpuCompute, createCompute, type SavedBytes } from "../compute.ts";
import { type CommandNumbers, currentCommand, now, numberCommands } from "./command-numbers.ts";
import type { SharedProgram, WorkerFailure, WorkerIdentity } from "./messages.ts";
import { allPartsDone, hasParts, offerParts, partIsDone, type TakenPart, takePart, takePartOf } from "./part-board.ts";
import {
  abortSchedule,
  awaitWork,
  callWorkers,
  createScheduler,
  enterRun,
  finishQueue,
  hasIdleWorker,
  isOver,
  parkQueue,
  requeue,
  type Scheduler,
  takeQueue,
  wakeQueue,
} from "./scheduler.ts";
import { type SharedWorks, shareWorks } from "./shared-works.ts";

export interface WorkerProgram {
  /** Takes part in one run. Returns when the run is over for this worker, with the failure on this worker, if any. */
  readonly run: (traced: boolean) => WorkerFailure | null;
}

export function createWorkerProgram(
  shared: SharedProgram,
  { number: worker, workers, jitter }: WorkerIdentity,
): WorkerProgram {
  const { program, memory, space, state, schedule, board, running, times, turns } = shared;
  const tables = createMachineTables(program, "streams");
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
  const compute = createCompute(program, space, library, memory);
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

// Runs large work in parts. A worker with large work offers its parts if another worker is idle, and both take parts
// until none is left. The owner then waits for parts that others still run; those never wait for anything.

interface PartRunner extends Sharing {
  /** Runs a part that another worker offers; returns false if there is none. */
  readonly help: () => boolean;
  readonly canHelp: () => boolean;
}

interface PartRunnerOptions<Saved> {
  readonly shared: SharedWorks;
  readonly numbers: CommandNumbers;
  readonly space: AddressSpace;
  readonly library: KernelLibrary;
  readonly compute: Compute<Saved>;
  readonly board: Int32Array;
  readonly scheduler: Scheduler;
  readonly worker: number;
  /**
   * The number of the command that this worker is running: set before it runs a part for another worker, read when it
   * offers.
   */
  readonly current: { command: number };
}

function createPartRunner<Saved>(options: PartRunnerOptions<Saved>): PartRunner {
  const { shared, numbers, space, library, compute, board, scheduler, worker, current } = options;
  const prepared = new Map<Kernel, PreparedKernel>();
  for (const work of shared.works.values()) {
    if (work.kind !== "launch") continue;
    for (const { kernel } of work.parts) if (!prepared.has(kernel)) prepared.set(kernel, library.prepare(kernel));
  }
  const launch = ({ inputs, outputs }: Launch, { kernel, inputOffsets, outputOffsets }: KernelPart): void => {
    const compiled = prepared.get(kernel);
    invariant(compiled !== undefined, "all parts are prepared", { kernel: kernel.kind });
    const address = (ref: Launch["inputs"][number], offset: number): number =>
      at(space.buffers, ref.buffer) + ref.offset + offset;
    compiled(
      inputs.map((ref, i) => address(ref, at(inputOffsets, i))),
      outputs.map((ref, i) => address(ref, at(outputOffsets, i))),
    );
  };
  const run = (taken: TakenPart): void => {
    const work = shared.works.get(taken.work);
    invariant(work !== undefined, "offered work has parts", taken);
    switch (work.kind) {
      case "launch":
        launch(work.launch, at(work.parts, taken.part));
        break;
      case "chains":
        for (const chain of at(work.parts, taken.part)) performMoves({ compute }, chain, () => null);
        break;
      default:
        unreachable(work);
    }
    partIsDone(board, taken);
  };
  const share = (number: number): boolean => {
    const work = shared.works.get(number);
    if (work === undefined || !hasIdleWorker(scheduler)) return false;
    const { length } = work.parts;
    offerParts(board, worker, { work: number, command: current.command }, length);
    callWorkers(scheduler, length - 1);
    for (let taken = takePartOf(board, worker); taken !== null; taken = takePartOf(board, worker)) run(taken);
    while (!allPartsDone(board, worker, length) && !isOver(scheduler));
    return true;
  };
  return {
    command: (rank, command) => share(numbers.numberOf(rank, command)),
    phase: ({ number }) => share(shared.ofPhase(number)),
    help: () => {
      const taken = takePart(board);
      if (taken === null) return false;
      current.command = taken.command;
      run(taken);
      return true;
    },
    canHelp: () => hasParts(board),
  };
}

// A worker's part in a run: it steps ready queues until nothing is left. It runs one heavy command or up to 16 cheap
// ones of a queue, then requeues it.

const cheapCommands = 16;

/** Checks of the ring before sleeping: about 50 us. Waking a sleeping worker takes about as long. */
const spins = 2_000;

interface WorkerRun {
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
function runQueues(run: WorkerRun): void {
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
