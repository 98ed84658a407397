/** Options of an executor and of its runs, and the checks of the executor's options. */
import type { Backend, RunReport } from "../backends/backend.ts";
import type { Program } from "../commands/program.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/arguments.ts";
import type { NamedNumbers } from "../compile/record.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import type { CompileOptions, Target } from "../compile/compile.ts";
import { mostDevices } from "../host/program-file.ts";
import { loweringNames, type OptionValue, recordingNames } from "../compile/options.ts";
import { pickOptions, requireOptions, resolveOptions } from "../compile/options/resolve.ts";
import type { TensorArgument } from "./tensor-arguments.ts";

export interface ExecutorOptions extends Omit<CompileOptions, "on" | "sizes" | "scalars" | "notes" | "schedule"> {
  /** A back end or its name; "cpu" if omitted. A name compiles for that back end. */
  readonly on?: Target | Backend;
  /**
   * The ranks that this process holds, for a back end with one process per device; all if omitted. Every process makes
   * the same calls with the same whole inputs, and gets the shards of its own ranks. Outputs are not gathered from
   * other processes.
   */
  readonly localRanks?: readonly number[];
  /**
   * "auto": choose the form, streams and rewrites with the shortest predicted time on the machine of `profile`
   * (docs/simulation.md). Given lowering options restrict the choice, and the Program's sizes must be known. If omitted,
   * "auto" for a Fusion with a `profile` and without `streams`, otherwise "as-written".
   */
  readonly schedule?: OptionValue<"schedule">;
  readonly profile?: MachineProfile;
  /** Seconds that a run may take; after that it fails with `timed-out`. 30 if omitted. */
  readonly timeout?: OptionValue<"timeout">;
  /**
   * Bytes that the Programs of all sizes may hold together in this process; 1 GiB if omitted. Each set of sizes or
   * scalars has its own Program and buffers. When another one does not fit, those that ran longest ago are released,
   * and a later run with their sizes prepares them again. The Program that runs is kept even if it needs more alone.
   */
  readonly memoryBudget?: number;
}

const usualMemoryBudget = 2 ** 30;

/** The back end's report, and what the executor did around the run. */
export interface ExecutorReport extends RunReport {
  /** Milliseconds that copied inputs to the devices' memory and outputs from it, apart from `milliseconds`. */
  readonly copyMilliseconds: number;
}

export interface RunOptions {
  /** Tensors or shards that receive the results, in the order of the outputs. `run` then returns these. */
  readonly outputs?: readonly TensorArgument[] | undefined;
  /**
   * Whether `run` returns whole outputs instead of one shard per rank. True if omitted, but false with `localRanks`.
   */
  readonly gather?: boolean;
  /**
   * Values of the host program's scalars, by name. They may control loops and branches, so other values make another
   * Program.
   */
  readonly scalars?: NamedNumbers;
  /** Sizes of symbolic extents that no input determines, by name. */
  readonly sizes?: NamedNumbers;
  /** Called after the run and the copies of its outputs. */
  readonly onReport?: (report: ExecutorReport, program: Program) => void;
  /**
   * Whether the report has a trace; if omitted, true with an `onReport`. A traced run on GPUs does not replay a graph.
   */
  readonly trace?: boolean;
}

/** Options of an executor that are not in the schema. */
const otherNames = [
  "devices",
  "on",
  "localRanks",
  "profile",
  "memoryBudget",
  "onProgress",
] as const satisfies readonly (keyof ExecutorOptions)[];

/** The executor's own options with defaults. Throws `device-count`, `bad-argument`, `bad-option` and `option-unknown`. */
export function resolveExecutorOptions(options: ExecutorOptions): {
  readonly timeout: number;
  readonly memoryBudget: number;
} {
  const { devices, localRanks, profile, schedule, memoryBudget = usualMemoryBudget } = options;
  requireOptions([...loweringNames, ...recordingNames, "verify", "schedule", "timeout"], options, otherNames);
  requireWholeNumber(callOf("devices"), devices, 1, mostDevices);
  requireWholeNumber(callOf("memoryBudget"), memoryBudget, 0);
  for (const rank of localRanks ?? []) requireLocalRank(rank, devices, callOf("localRanks"));
  const { timeout } = resolveOptions(["timeout"], pickOptions(["timeout"], options));
  if (schedule === "auto" && profile === undefined) noProfile();
  return { timeout, memoryBudget };
}

function noProfile(): never {
  return fail({
    code: "bad-argument",
    message: "the schedule cannot be chosen without a machine profile",
    place: { kind: "call", text: callOf("schedule") },
    found: "auto without a profile",
    expected: "a profile that braid calibrate wrote",
    help: "pass a profile, or leave schedule out",
  });
}

function callOf(option: string): string {
  return `MultiDeviceExecutor.create(source, { ${option} })`;
}

function requireLocalRank(rank: number, devices: number, text: string): void {
  requireWholeNumber(text, rank, 0);
  if (rank < devices) return;
  fail({
    code: "device-count",
    message: `there is no rank ${rank}`,
    place: { kind: "call", text },
    found: String(rank),
    expected: `0 to ${devices - 1}`,
    help: "pass ranks of this world",
  });
}
