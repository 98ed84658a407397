/**
 * The contract of a back end. A back end executes linked Programs; it never sees a HostProgram.
 *
 * open: a Group is the ranks of a world that this process holds (the CPU holds all, CUDA one).
 * prepare: places a Program's buffers and compiles its kernels, once per Program; all ranks take part. Signal slots are
 * zero afterwards.
 * execute: one run, or several in a row as a loop of training hands them over. Inputs must have been written before; outputs hold the result afterwards and until the next run.
 * A run that fails (stuck, timed out, a kernel threw) rejects with a DiagnosticError; the Group stays usable.
 */
import type { BufferId } from "../commands/buffer.ts";
import type { Program } from "../commands/program.ts";
import type { TraceEvent, TraceOrigin } from "../trace/event.ts";

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
   * Runs of this call; 1 if not given. They go to the device one behind the other, and the host waits for the end of the last alone. Every run reads the inputs as they are. Throws
   * `bad-option` for what is no positive whole number, and for more than 1 with `trace`.
   */
  readonly runs?: number;
  /** Milliseconds; runs that together take longer end with `timed-out`. */
  readonly timeout?: number;
  /** Whether to record TraceEvents. */
  readonly trace?: boolean;
  /** Whether to measure the run on the device as well, where that has a clock of its own (CUDA). */
  readonly deviceTime?: boolean;
}

/** Times are of all runs of the call together. */
export interface RunReport {
  /** Wall-clock milliseconds of the runs. */
  readonly milliseconds: number;
  /** Of these, those that the host took to hand everything to the device, where one thread does that (CUDA). */
  readonly hostMilliseconds?: number;
  /** If asked for, where the device has a clock: from the caller's stream's turn to the end of the last run, without the host's calls before. */
  readonly deviceMilliseconds?: number;
  /** In order of their start; empty unless asked for. */
  readonly trace: readonly TraceEvent[];
  /** Where ranks have clocks of their own (CUDA): the zeros of their times. */
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
