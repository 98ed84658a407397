/**
 * Runs on the calling thread: the deterministic machine steps streams in the order of an interleaving, so that every
 * run can be repeated.
 */
import { type BufferId, positionIn } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { createKernelLibrary, type KernelLibraryOptions, scratchBytes } from "../../kernels/kernel-library.ts";
import type { Observer } from "../../machine/execution.ts";
import type { CallerStep, Interleaving } from "../../machine/interleaving.ts";
import { createMachine, hasEagerTransfers, type MachineOptions } from "../../machine/machine.ts";
import type { CommandRef } from "../../commands/command.ts";
import { atCommand, positionText, commandThrew } from "../../machine/obstacle.ts";
import { at } from "../../support/invariant.ts";
import type { TraceEvent } from "../../trace/event-table.ts";
import type { FlightStanding } from "../../trace/flight/flight-record.ts";
import { type ExecuteOptions, type Group, type Prepared, type RunReport, runsInARow } from "../backend.ts";
import type { FlightRecorder, Standings } from "../flight/flight-recorder.ts";
import { programFlights } from "../flight/program-flights.ts";
import { createGroupMemory, layOutProgram } from "./address-space.ts";
import { createCompute, savedBytes } from "./compute.ts";

export type MachineGroupOptions = Pick<MachineOptions, "interleaving" | "queues" | "transfers">;

/** `gemms`: GEMMs on a memory that replace the kernel library's own. */
export function openMachineGroup(
  options: MachineGroupOptions,
  recorder: FlightRecorder | null = null,
  gemms: (buffer: ArrayBufferLike) => Pick<KernelLibraryOptions, "gemms"> = () => ({}),
): Group {
  return { prepare: async (program) => prepare(program, options, recorder, gemms), close: async () => {} };
}

function prepare(
  program: Program,
  options: MachineGroupOptions,
  flights: FlightRecorder | null,
  gemms: (buffer: ArrayBufferLike) => Pick<KernelLibraryOptions, "gemms">,
): Prepared {
  const scratch = program.kernels.reduce((most, kernel) => Math.max(most, scratchBytes(kernel)), 0);
  const space = layOutProgram(program, scratch, hasEagerTransfers(options) ? savedBytes(program) : 0);
  const memory = createGroupMemory(program, space, { shared: false });
  const library = createKernelLibrary({ memory, scratch: space.scratch, ...gemms(memory.buffer) });
  const recorder = createTraceRecorder(program);
  const flight = flights?.open(programFlights(program), [...program.ranks.keys()], recorder.standings) ?? null;
  const compute = createCompute(program, space, library, memory);
  const bytesOf = (id: BufferId): Uint8Array =>
    new Uint8Array(memory.buffer, at(space.buffers, id), at(program.buffers, id).bytes);
  const callers = createInterleavedCallers(program, options.interleaving, bytesOf);
  const machine = createMachine(program, compute, {
    ...options,
    observer: recorder.observer,
    caller: (step) => callers.step(step),
  });
  return {
    write: (id, bytes) => bytesOf(id).set(bytes),
    read: (id) => callers.hasRead(id) ?? bytesOf(id).slice(),
    view: (id) => callers.hasRead(id) ?? bytesOf(id),
    execute: async (options: ExecuteOptions = {}): Promise<RunReport> => {
      const { timeout = Infinity, trace = false } = options;
      const runs = runsInARow(options);
      recorder.begin(trace, 1000 * timeout);
      for (let run = 0; run < runs; run++) {
        compute.forget();
        callers.begin();
        flight?.begin("all");
        recorder.beginRun();
        try {
          machine.run();
          flight?.end();
        } catch (error) {
          const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
          const position = recorder.current();
          const found =
            error instanceof DiagnosticError
              ? error.diagnostics.map((each) => atCommand(each, { program }, position))
              : [commandThrew({ program }, position, text)];
          const failure = new DiagnosticError(found);
          throw flights?.failed(failure) ?? failure;
        } finally {
          callers.end();
        }
      }
      return recorder.end();
    },
    release: () => flight?.release(),
  };
}

interface TraceRecorder {
  readonly observer: Observer;
  /** `timeout` in milliseconds. */
  readonly begin: (trace: boolean, timeout: number) => void;
  /** The command that started last. */
  readonly current: () => CommandRef | null;
  readonly end: () => RunReport;
  /** Where the streams of a rank stand in the run since `beginRun`. */
  readonly standings: Standings;
  readonly beginRun: () => void;
}

/** Records times of commands and checks the timeout for the machine, which has no clock. */
function createTraceRecorder(program: Program): TraceRecorder {
  let origin = 0;
  let deadline = Infinity;
  let timeoutInForce = Infinity;
  let current: CommandRef | null = null;
  let tracing = false;
  let trace: TraceEvent[] = [];
  let starts = new Map<string, number>();
  let moves = new Map<string, number>();
  /** By rank and stream: the last commands that have begun and ended. */
  const reached = program.ranks.map(({ streams }) => streams.map(() => ({ begun: -1, ended: -1 })));
  const note = (rank: number, command: number, step: "begun" | "ended"): void => {
    at(at(reached, rank), at(at(program.ranks, rank).commands, command).stream)[step] = command;
  };
  return {
    observer: {
      start: (rank, command) => {
        current = { rank, command };
        note(rank, command, "begun");
        const now = performance.now();
        if (now > deadline) timedOut(positionText({ program }, current), timeoutInForce);
        if (tracing) starts.set(`${rank}.${command}`, now);
      },
      moved: (rank, command) => {
        if (tracing) moves.set(`${rank}.${command}`, performance.now());
      },
      end: (rank, command) => {
        note(rank, command, "ended");
        if (!tracing) return;
        const name = `${rank}.${command}`;
        const start = starts.get(name) ?? origin;
        const end = moves.get(name) ?? performance.now();
        const { stream } = at(at(program.ranks, rank).commands, command);
        trace.push({ rank, stream, command, start: start - origin, end: end - origin });
      },
    },
    begin: (wanted, timeout) => {
      origin = performance.now();
      timeoutInForce = timeout;
      current = null;
      deadline = origin + timeout;
      tracing = wanted;
      trace = [];
      starts = new Map();
      moves = new Map();
    },
    current: () => current,
    end: () => ({ milliseconds: performance.now() - origin, trace }),
    standings: (rank) => at(reached, rank).map((each): FlightStanding => ({ ...each, orLater: false, ago: null })),
    beginRun: () => {
      for (const each of reached.flat()) Object.assign(each, { begun: -1, ended: -1 });
    },
  };
}

function timedOut(command: string, timeout: number): never {
  return fail("timed-out", `the run did not end within ${timeout} ms`, {
    place: { kind: "statement", text: command },
    found: "a run that is still in progress",
    expected: `an end within ${timeout} ms`,
    help: "allow more time (--timeout), or use smaller sizes",
  });
}

/**
 * Acts as a caller in the middle of a run if an interleaving says so: reads outputs before they are complete, writes
 * inputs late, or writes the next run's inputs early. In a correct program these moments never matter. In an incorrect
 * one they expose races with the caller.
 */
interface ScheduledCallers {
  /** Starts a run: inputs that will be written late are removed. */
  begin(): void;
  step(step: CallerStep): void;
  /** Ends the run: inputs are as they were written. */
  end(): void;
  /** The bytes that the caller read of a buffer during the last run; undefined if it reads after the run. */
  hasRead(buffer: BufferId): Uint8Array | undefined;
}

/** `bytesOf` is the memory of a buffer. */
function createInterleavedCallers(
  program: Program,
  interleaving: Interleaving | undefined,
  bytesOf: (buffer: BufferId) => Uint8Array,
): ScheduledCallers {
  const steps = interleaving?.kind === "list" ? interleaving.steps : [];
  const late = new Set(steps.flatMap((step) => ("caller" in step && step.caller === "writes" ? [step.rank] : [])));
  const buffersOf = (rank: number, role: "input" | "output"): readonly BufferId[] =>
    program.buffers.flatMap((buffer) => (buffer.rank === rank && positionIn(buffer, role) !== null ? [buffer.id] : []));
  const written = new Map<BufferId, Uint8Array>();
  const read = new Map<BufferId, Uint8Array>();
  const spoil = (rank: number): void => {
    for (const id of buffersOf(rank, "input")) {
      const bytes = bytesOf(id);
      written.set(id, bytes.slice());
      // Changes every element.
      for (let i = 0; i < bytes.length; i++) bytes[i] = ~(bytes[i] ?? 0);
    }
  };
  const restore = (ids: Iterable<BufferId>): void => {
    for (const id of ids) {
      const bytes = written.get(id);
      if (bytes !== undefined) bytesOf(id).set(bytes);
      written.delete(id);
    }
  };
  return {
    begin: () => {
      read.clear();
      for (const rank of late) spoil(rank);
    },
    step: ({ rank, caller }) => {
      if (caller === "overwrites") spoil(rank);
      else if (caller === "writes") restore(buffersOf(rank, "input"));
      else for (const id of buffersOf(rank, "output")) read.set(id, bytesOf(id).slice());
    },
    end: () => restore([...written.keys()]),
    hasRead: (buffer) => read.get(buffer),
  };
}
