/**
 * Messages between the main thread and its workers. Anything large is shared, or cloned once when a Program is
 * prepared.
 */
import type { Program } from "../../../commands/program.ts";
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import type { WasmMemory } from "../../../support/webassembly.ts";
import type { AddressSpace } from "../address-space.ts";

/** The shared memory of a prepared Program. */
export interface SharedProgram {
  readonly program: Program;
  readonly memory: WasmMemory;
  readonly space: AddressSpace;
  /** The machine's state. */
  readonly state: Int32Array;
  readonly schedule: Int32Array;
  /** Parts of large work that workers offer each other. */
  readonly board: Int32Array;
  /** The command that each worker is running (command-numbers.ts). */
  readonly running: Int32Array;
  /** Start and end of every command, in milliseconds of one clock (command-numbers.ts). */
  readonly times: Float64Array;
  /** By queue: the clock at its last turn; then the clock, which the main thread advances (threaded-group.ts). */
  readonly turns: Int32Array;
  /** The file of the BLAS used for GEMMs; null for none. */
  readonly blas: string | null;
}

/** The data that a worker starts with. */
export interface WorkerIdentity {
  /** 0 .. workers-1. */
  readonly number: number;
  readonly workers: number;
  /** A seed of random pauses, for tests of the scheduler; null for none. */
  readonly jitter: number | null;
}

export function isIdentity(value: unknown): value is WorkerIdentity {
  return typeof value === "object" && value !== null && "number" in value && "jitter" in value;
}

export type ToWorker =
  | { readonly kind: "prepare"; readonly id: number; readonly shared: SharedProgram }
  | { readonly kind: "run"; readonly id: number; readonly traced: boolean }
  | { readonly kind: "release"; readonly id: number };

/** The failure of a run on one worker; null if there is none. */
export interface WorkerFailure {
  /** The command that it was running; null outside of commands. */
  readonly at: { readonly rank: number; readonly command: number } | null;
  /** The thrown diagnostics, or the text of any other error. */
  readonly diagnostics: readonly Diagnostic[] | null;
  readonly text: string;
}

export type FromWorker =
  | { readonly kind: "prepared"; readonly id: number; readonly failure: string | null }
  | { readonly kind: "ran"; readonly id: number; readonly failure: WorkerFailure | null };
