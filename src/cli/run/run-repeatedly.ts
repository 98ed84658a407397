/** The runs of `braid run`: as many as --repeat asks for, of which the last is traced if something shows it. */
import { access, constants, stat } from "node:fs/promises";
import path from "node:path";
import type { Program } from "../../commands/program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { ExecutorReport } from "../../executor/executor-options.ts";
import type { MultiDeviceExecutor } from "../../executor/multi-device-executor.ts";
import type { TensorArgument } from "../../executor/tensor-arguments.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { systemReason } from "../../support/wording.ts";
import type { ProgressStep } from "../terminal/progress.ts";
import { replaceFile } from "../terminal/output-file.ts";
import type { OneRun, GatheredRuns } from "./gather.ts";
import type { RunFlags } from "./run-flags.ts";

/** `isWhole`: this process has all ranks. */
export async function runRepeatedly(
  executor: MultiDeviceExecutor<TensorArgument>,
  inputs: readonly Tensor[],
  { repeat, devices, trace, timeline, explain, check, interleaving }: RunFlags,
  isWhole: boolean,
  step: ProgressStep,
): Promise<GatheredRuns> {
  const runs: OneRun[] = [];
  let outputs: readonly TensorArgument[] = [];
  if (explain && repeat === 1) {
    // The first run loads libraries and compiles, which explains nothing.
    step("running once before the explained run");
    await executor.run(inputs, { trace: false, ...(isWhole ? {} : { gather: false }) });
  }
  for (let i = 0; i < repeat; i++) {
    if (repeat === 1) step(`running on ${devices} devices`);
    else step(`running on ${devices} devices`, i, repeat);
    const onReport = (report: ExecutorReport, program: Program): void => void runs.push({ report, program });
    // Only the last run is traced, because a traced run does not replay a graph.
    const shown = i === repeat - 1 && (trace !== undefined || timeline || explain);
    // Whoever looks for errors needs all copies of an output.
    const asShards = isWhole && i === repeat - 1 && (check !== undefined || interleaving !== undefined);
    // Later runs fill the tensors of the first: new memory costs more than the copies.
    const into = asShards ? { gather: false } : isWhole && i > 0 ? { outputs } : {};
    outputs = await executor.run(inputs, { onReport, trace: shown, ...into });
  }
  return { outputs, runs };
}

// The file of `--trace`.

export interface TraceFile {
  /** The path that the user gave. */
  readonly path: string;
  readonly bytes: number;
}

/** Throws `file-unwritable` if the file cannot be created or replaced. Call it before the run, which may be long. */
export async function requireTraceFile(file: string): Promise<void> {
  const folder = path.dirname(file);
  const found = await stat(folder).catch((error: unknown) => unwritable(file, `${folder}: ${systemReason(error)}`));
  if (!found.isDirectory()) unwritable(file, `${folder}: not a folder`);
  await access(folder, constants.W_OK).catch((error: unknown) => unwritable(file, `${folder}: ${systemReason(error)}`));
  const old = await stat(file).catch(() => null);
  if (old !== null && !old.isFile())
    unwritable(file, `${file}: ${old.isDirectory() ? "a folder" : "not a regular file"}`);
}

/** Writes the pieces one after the other. Throws `file-unwritable`, and then leaves an older file unchanged. */
export async function writeTraceFile(file: string, pieces: Iterable<string>): Promise<TraceFile> {
  const bytes = await replaceFile(file, pieces).catch((error: unknown) => unwritable(file, systemReason(error)));
  return { path: file, bytes };
}

function unwritable(file: string, found: string): never {
  return fail("file-unwritable", "the trace cannot be written", {
    place: { kind: "option", text: `--trace ${file}` },
    found,
    expected: "a file in a folder that exists and can be written to",
    help: "make the folder, or name another file",
  });
}
