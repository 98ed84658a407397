/** The runs of `braid run`: as many as --repeat asks for, of which the last is traced if something shows it. */
import type { Program } from "../../commands/program.ts";
import type { ExecutorReport } from "../../executor/executor-options.ts";
import type { MultiDeviceExecutor } from "../../executor/multi-device-executor.ts";
import type { TensorArgument } from "../../executor/tensor-arguments.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import type { Step } from "../terminal/progress.ts";
import type { OneRun, Runs } from "./gather.ts";
import type { RunFlags } from "./run-flags.ts";

/** `isWhole`: this process has all ranks. */
export async function runRepeatedly(
  executor: MultiDeviceExecutor<TensorArgument>,
  inputs: readonly Tensor[],
  { repeat, devices, trace, timeline, explain, check, interleaving }: RunFlags,
  isWhole: boolean,
  step: Step,
): Promise<Runs> {
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
