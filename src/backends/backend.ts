/**
 * The contract of a back end. It executes linked Programs and never sees a HostProgram.
 *
 * open: a Group holds the ranks of a world that run in this process: all ranks on the CPU, one with CUDA.
 * prepare: places a Program's buffers and compiles its kernels, once per Program. All ranks take part. Signal slots are
 * zero afterwards.
 * execute: one run, or several in a row like a training loop. Inputs must be written before the call. Outputs hold the
 * result afterwards, until the next run. A run that fails (stuck, timed out, a kernel threw) rejects with a
 * DiagnosticError; a CPU Group stays usable, a CUDA Group does not (`rank-failed`).
 */
import type { BufferId } from "../commands/buffer.ts";
import type { Program } from "../commands/program.ts";
import type { TraceEvent, TraceOrigin } from "../trace/event-table.ts";
import { fail } from "../diagnostics/diagnostic.ts";

export interface OpenOptions {
  readonly world: number;
  readonly localRanks: readonly number[];
}

export interface Backend {
  readonly name: string;
  /**
   * Why no attention runs as one kernel on this machine, or none whose gradient has heads of so many elements; null if
   * some does. Absent if every attention does. Asked before a program with attention is lowered.
   */
  readonly attentionObstacle?: (gradientHeads: number) => string | null;
  open(options: OpenOptions): Promise<Group>;
}

export interface Group {
  prepare(program: Program): Promise<Prepared>;
  close(): Promise<void>;
}

export interface ExecuteOptions {
  /**
   * The number of runs of this call; 1 if omitted. The host enqueues them one after the other and waits only for the
   * last. Every run reads the same inputs. Throws `bad-option` unless it is a positive whole number, and for several
   * runs with `trace`.
   */
  readonly runs?: number;
  /** Seconds for all runs of the call together. A call that takes longer fails with `timed-out`. */
  readonly timeout?: number;
  /** Whether to record TraceEvents. */
  readonly trace?: boolean;
  /** Whether to also time the run by the device's own clock, if it has one (CUDA). */
  readonly deviceTime?: boolean;
  /**
   * Whether ranks of several processes wait for each other before the run, so that its time has none in which others
   * still copied their inputs (CUDA).
   */
  readonly together?: boolean;
}

/** Times of all runs of a call together. */
export interface RunReport {
  /** Wall-clock milliseconds of the runs. */
  readonly milliseconds: number;
  /** Milliseconds until the host had enqueued everything, if one thread does so (CUDA). */
  readonly hostMilliseconds?: number;
  /**
   * Milliseconds from the start of the caller's stream to the end of the last run, by the device's clock; absent unless
   * requested. Host calls before the start do not count.
   */
  readonly deviceMilliseconds?: number;
  /** Events in order of start; empty unless requested. */
  readonly trace: readonly TraceEvent[];
  /** The zero of each rank's times, if ranks have their own clocks (CUDA). */
  readonly origins?: readonly TraceOrigin[];
}

export interface Prepared {
  /** Copies bytes, in the buffer's layout, into an input or inout output buffer of a local rank. */
  write(buffer: BufferId, bytes: Uint8Array): void;
  /** A copy of the bytes of a buffer of a local rank. */
  read(buffer: BufferId): Uint8Array;
  /**
   * The memory of a buffer of a local rank, to write and read without a copy, until the next run or `release`. Null if
   * JavaScript cannot address it (CUDA).
   */
  view(buffer: BufferId): Uint8Array | null;
  execute(options?: ExecuteOptions): Promise<RunReport>;
  release(): void;
}

/** Throws `bad-option` unless `runs` is a positive whole number, and for a trace of several runs. */
export function runsInARow({ runs = 1, trace = false }: ExecuteOptions): number {
  if (Number.isSafeInteger(runs) && runs >= 1 && (runs === 1 || !trace)) return runs;
  return fail("bad-option", trace ? "a trace covers one run" : "option runs has a bad value", {
    place: { kind: "option", text: "execute({ runs })" },
    found: String(runs),
    expected: trace ? "1 with trace: true" : "a whole number of at least 1",
    help: trace
      ? "trace a single run, or leave trace out"
      : "pass a positive whole number, or leave runs out for one run",
  });
}
