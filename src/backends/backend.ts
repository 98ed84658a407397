/**
 * The contract of a back end, which executes linked Programs and never sees a HostProgram.
 *
 * open: a Group is the ranks of a world that this process holds (the CPU holds all, CUDA one).
 * prepare: places a Program's buffers and compiles its kernels, once per Program. All ranks take part. Signal slots are
 * zero afterwards.
 * execute: one run, or several in a row like a training loop. Inputs must be written before; outputs hold the result
 * afterwards, until the next run. A run that fails (stuck, timed out, a kernel threw) rejects with a DiagnosticError;
 * the Group stays usable.
 */
import type { BufferId } from "../commands/buffer.ts";
import type { Program } from "../commands/program.ts";
import type { TraceEvent, TraceOrigin } from "../trace/event.ts";
import { fail } from "../diagnostics/diagnostic.ts";

export interface OpenOptions {
  readonly world: number;
  readonly localRanks: readonly number[];
}

export interface Backend {
  readonly name: string;
  open(options: OpenOptions): Promise<Group>;
}

export interface Group {
  prepare(program: Program): Promise<Prepared>;
  close(): Promise<void>;
}

export interface ExecuteOptions {
  /**
   * The number of runs of this call; 1 if omitted. They go to the device one after the other, and the host waits only
   * for the end of the last. Every run reads the same inputs. Throws `bad-option` for anything but a positive whole
   * number, and for more than 1 with `trace`.
   */
  readonly runs?: number;
  /** Seconds for all runs of the call together; beyond that they end with `timed-out`. */
  readonly timeout?: number;
  /** Whether to record TraceEvents. */
  readonly trace?: boolean;
  /** Whether to time the run on the device too, if it has its own clock (CUDA). */
  readonly deviceTime?: boolean;
}

/** Times cover all runs of the call together. */
export interface RunReport {
  /** Wall-clock milliseconds of the runs. */
  readonly milliseconds: number;
  /** The part of them that the host took to hand everything to the device, if one thread does that (CUDA). */
  readonly hostMilliseconds?: number;
  /**
   * If requested and the device has a clock: from the start of the caller's stream to the end of the last run, without
   * the host's calls before.
   */
  readonly deviceMilliseconds?: number;
  /** In order of start; empty unless requested. */
  readonly trace: readonly TraceEvent[];
  /** If ranks have their own clocks (CUDA): the zeros of their times. */
  readonly origins?: readonly TraceOrigin[];
}

export interface Prepared {
  /** Copies bytes into an input (or inout output) buffer of a local rank. */
  write(buffer: BufferId, bytes: Uint8Array): void;
  /** A copy of the bytes of a buffer of a local rank. */
  read(buffer: BufferId): Uint8Array;
  execute(options?: ExecuteOptions): Promise<RunReport>;
  release(): void;
}

/** Throws `bad-option` for anything but a positive whole number, and for a trace of several runs. */
export function runsInARow({ runs = 1, trace = false }: ExecuteOptions): number {
  if (Number.isSafeInteger(runs) && runs >= 1 && (runs === 1 || !trace)) return runs;
  return fail({
    code: "bad-option",
    message: trace ? "a trace covers one run" : "option runs has a bad value",
    place: { kind: "option", text: "execute({ runs })" },
    found: String(runs),
    expected: trace ? "1 with trace: true" : "a whole number of at least 1",
    help: trace
      ? "trace a single run, or leave trace out"
      : "pass a positive whole number, or leave runs out for one run",
  });
}
