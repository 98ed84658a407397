/**
 * A group of the CPU back end that runs streams on worker threads. The main thread lays out the shared memory, starts
 * runs and keeps the timeout. It never blocks.
 */
import { availableParallelism } from "node:os";
import type { BufferId } from "../../../commands/buffer.ts";
import type { Program } from "../../../commands/program.ts";
import { type Diagnostic, DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { beginRun, hasArrived, type RunProgress, resetState } from "../../../machine/execution.ts";
import { atCommand, positionText, commandThrew, stuck, timedOutDiagnostic } from "../../../machine/obstacle.ts";
import { commandAt, createMachineTables, participantNumber, type MachineTables } from "../../../machine/tables.ts";
import { at } from "../../../support/invariant.ts";
import { copyBytes, growWasmMemory, type WasmMemory } from "../../../support/webassembly.ts";
import type { FlightStanding } from "../../../trace/flight/flight-record.ts";
import { type ExecuteOptions, type Group, type Prepared, type RunReport, runsInARow } from "../../backend.ts";
import { createFlightRecorder, type Flight, type FlightRecorder } from "../../flight/flight-recorder.ts";
import { programFlights } from "../../flight/program-flights.ts";
import { type AddressSpace, createGroupMemory, layOutProgram } from "../address-space.ts";
import { currentCommand, now, numberCommands, runningWords, traceOf } from "./command-numbers.ts";
import type { SharedProgram, WorkerFailure } from "./messages.ts";
import { boardWords } from "./part-board.ts";
import { abortSchedule, allDone, beginSchedule, createScheduler, schedulerWords, type Scheduler } from "./scheduler.ts";
import { mostScratch, partitionKernels } from "./shared-works.ts";
import { createWorkerPool, type PoolOptions, WorkerDeath, type WorkerPool } from "./worker-pool.ts";

/** Milliseconds that workers get to leave an aborted run before they are terminated. */
const grace = 2_000;

/** The longest delay of setTimeout; a longer one would fire at once. */
const longestDelay = 2 ** 31 - 1;

/**
 * `blas` is the file of the BLAS that all workers use; `outside` connects runs with other processes, which have the
 * ranks that have no commands here.
 */
export function openThreadedGroup(
  options: Partial<PoolOptions> = {},
  blas: string | null = null,
  recorder: FlightRecorder = createFlightRecorder(),
  outside: Outside | null = null,
): Group {
  const pool = createWorkerPool({ workers: availableParallelism(), ...options });
  const memories = createMemoryPool();
  let nextId = 0;
  // The workers serve one request at a time.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(task: () => Promise<T>): Promise<T> => {
    const result = last.then(task);
    last = result.catch(() => {});
    return result;
  };
  return {
    prepare: (program) =>
      inTurn(() => prepare(program, pool, { id: nextId++, blas, memories, recorder, outside }, inTurn)),
    close: () => pool.stop(),
  };
}

interface Holdings {
  readonly id: number;
  readonly blas: string | null;
  readonly memories: MemoryPool;
  readonly recorder: FlightRecorder;
  readonly outside: Outside | null;
}

async function prepare(
  program: Program,
  pool: WorkerPool,
  { id, blas, memories, recorder, outside }: Holdings,
  inTurn: <T>(task: () => Promise<T>) => Promise<T>,
): Promise<Prepared> {
  const scratch = mostScratch(program, partitionKernels(program, pool.size));
  const space = layOutProgram(program, scratch, 0, pool.size);
  const memory = memories.take(program, space);
  let released = false;
  const tables = createMachineTables(program, "streams");
  const shared: SharedProgram = {
    program,
    memory,
    space,
    state: new Int32Array(new SharedArrayBuffer(4 * tables.layout.words)),
    schedule: new Int32Array(new SharedArrayBuffer(4 * schedulerWords(tables.queues.length))),
    board: new Int32Array(new SharedArrayBuffer(4 * boardWords(pool.size))),
    running: new Int32Array(new SharedArrayBuffer(4 * runningWords(pool.size))),
    times: new Float64Array(new SharedArrayBuffer(8 * Math.max(1, 2 * numberCommands(program).count))),
    turns: new Int32Array(new SharedArrayBuffer(4 * (tables.queues.length + 1))),
    blas,
  };
  const progress = { tables, state: shared.state };
  const here = program.ranks.flatMap(({ rank, commands }) => (outside === null || commands.length > 0 ? [rank] : []));
  const flight = recorder.open(programFlights(program), here, (rank) => standingsOf(progress, shared, pool.size, rank));
  const others = outside?.(shared, progress) ?? null;
  await pool.prepare(id, shared).catch((reason: unknown) => {
    throw new DiagnosticError([workerDied(reason, null)]);
  });
  const bytesOf = (buffer: BufferId): Uint8Array =>
    new Uint8Array(memory.buffer, at(space.buffers, buffer), at(program.buffers, buffer).bytes);
  return {
    write: (buffer, bytes) => copyBytes(bytes, bytesOf(buffer)),
    read: (buffer) => bytesOf(buffer).slice(),
    view: bytesOf,
    execute: (options = {}) => inTurn(() => execute(progress, shared, { pool, id, flight, recorder, others }, options)),
    release: () => {
      if (released) return;
      released = true;
      pool.release(id);
      flight.release();
      memories.give(memory);
    },
  };
}

interface Run {
  readonly pool: WorkerPool;
  readonly id: number;
  readonly flight: Flight;
  readonly recorder: FlightRecorder;
  readonly others: OutsideRun | null;
}

async function execute(
  progress: RunProgress,
  { program, schedule, board, running, times, turns }: SharedProgram,
  { pool, id, flight, recorder, others }: Run,
  options: ExecuteOptions,
): Promise<RunReport> {
  const { timeout: seconds = Infinity, trace = false } = options;
  const timeout = 1000 * seconds;
  const runs = runsInARow(options);
  const { tables, state } = progress;
  const scheduler = createScheduler(schedule, tables.queues.length);
  const lengths = tables.queues.map(({ commands }) => commands.length);
  if (trace) times.fill(0);
  let expired: Diagnostic | null = null;
  let lastResort: NodeJS.Timeout | undefined;
  const giveUp = (): void => {
    expired = timedOutDiagnostic(progress, timeout);
    abortSchedule(scheduler);
    lastResort = setTimeout(() => void pool.end(), grace);
  };
  const ticks = setInterval(() => tick(turns), tickMilliseconds);
  const deadline = timeout === Infinity ? undefined : setTimeout(giveUp, Math.min(timeout, longestDelay));
  const origin = now();
  try {
    for (let run = 0; run < runs; run++) {
      beginRun(tables, state);
      beginSchedule(scheduler, lengths, pool.size, others !== null);
      flight.begin("all");
      board.fill(0);
      running.fill(0);
      const [failures, outside = null] = await Promise.all([pool.run(id, trace), others?.run(scheduler)]);
      const failure = expired ?? firstFailure(failures, progress) ?? outside;
      const diagnostic = failure ?? (allDone(scheduler) ? null : stuck(progress));
      if (diagnostic !== null) throw new DiagnosticError([diagnostic]);
      flight.end();
    }
    return { milliseconds: now() - origin, trace: trace ? traceOf(program, times, origin) : [] };
  } catch (error) {
    const reason = expired === null ? error : new DiagnosticError([expired]);
    const failure =
      reason instanceof DiagnosticError
        ? reason
        : new DiagnosticError([workerDied(reason, commandOf(reason, tables, running))]);
    const noted = recorder.failed(failure);
    resetState(state);
    throw noted;
  } finally {
    clearInterval(ticks);
    clearTimeout(deadline);
    clearTimeout(lastResort);
  }
}

/** The failure of a command: its diagnostic, or any other error, with the command it came from. */
function firstFailure([failure]: readonly WorkerFailure[], { tables }: RunProgress): Diagnostic | null {
  if (failure === undefined) return null;
  const { at: position, diagnostics, text } = failure;
  const [known] = diagnostics ?? [];
  return known === undefined ? commandThrew(tables, position, text) : atCommand(known, tables, position);
}

/** The command that a worker was running when it died, as text; null if it was running none. */
function commandOf(reason: unknown, tables: MachineTables, running: Int32Array): string | null {
  if (!(reason instanceof WorkerDeath) || reason.worker === null) return null;
  const { command } = currentCommand(running, reason.worker);
  return command === -1 ? null : positionText(tables, numberCommands(tables.program).placeOf(command));
}

function workerDied(reason: unknown, command: string | null): Diagnostic {
  return {
    code: "worker-died",
    message: "a worker thread ended during a run",
    ...(command === null ? {} : { place: { kind: "statement", text: command } }),
    found: reason instanceof Error ? reason.message : String(reason),
    expected: "workers that live as long as the executor",
    help: "run again: the next run starts new workers",
  };
}

// Where streams stand, for flight records: the machine's state has it already. Only the time of a stream's last turn is
// extra, in steps of the main thread's clock, so that workers read none.

const tickMilliseconds = 20;

function tick(turns: Int32Array): void {
  turns[turns.length - 1] = (turns[turns.length - 1] ?? 0) + 1;
}

/** The streams of a rank, with `workers` workers. */
function standingsOf(
  progress: RunProgress,
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

// The shared memories of a group. A released memory is zeroed and used again, and grows if it is too small: the
// collector of the threads that share a memory does not see its size, so an unused one would stay for a long time.

interface MemoryPool {
  /** A zeroed memory for the Program. Throws `memory-limit`. */
  readonly take: (program: Program, space: AddressSpace) => WasmMemory;
  readonly give: (memory: WasmMemory) => void;
}

export function createMemoryPool(): MemoryPool {
  // By size, the smallest first.
  const free: WasmMemory[] = [];
  const reuse = (bytes: number): WasmMemory | undefined => {
    const fitting = free.findIndex(({ buffer }) => buffer.byteLength >= bytes);
    const [memory] = free.splice(fitting, 1);
    return memory === undefined || growWasmMemory(memory, bytes) ? memory : undefined;
  };
  return {
    take: (program, space) => {
      const memory = reuse(space.bytes);
      if (memory === undefined) return createGroupMemory(program, space, { shared: true });
      new Uint8Array(memory.buffer, 0, space.bytes).fill(0);
      return memory;
    },
    give: (memory) => {
      const place = free.findIndex(({ buffer }) => buffer.byteLength >= memory.buffer.byteLength);
      free.splice(place < 0 ? free.length : place, 0, memory);
    },
  };
}

/*
 * What a run has to do with other processes: the part of a threaded group that a back end over several processes
 * provides. Streams that wait for another process are parked, so the run is held open until `run` releases it.
 */

export interface OutsideRun {
  /**
   * Called in every run, together with the workers. Resolves when the run is over in all processes, after `releaseRun`,
   * or when it was aborted: with the reason, if that lies in another process.
   */
  readonly run: (scheduler: Scheduler) => Promise<Diagnostic | null>;
}

type Outside = (shared: SharedProgram, progress: RunProgress) => OutsideRun;
