/**
 * Measures rates of single kernels on this rank's GPU, and times of all-gather + matmul over all GPUs, by CUDA events
 * and by the host's clock.
 */
import { soloBackend } from "../../bench/harness/gpu-groups.ts";
import { type PartContext, type Row, rowOf } from "../../bench/harness/rows.ts";
import type { RunReport } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { pipelineShapes } from "./pipeline-programs.ts";
import { pipelineRows } from "./pipeline-rows.ts";
import { noise } from "./noise.ts";
import { kernelCases, type SpeedCase } from "./speed-cases.ts";

export async function* speedRows({ world }: PartContext): AsyncGenerator<Row> {
  if (world.rank === 0) {
    for (const each of kernelCases) yield await rowOf(each.name, () => kernelSpeed(each, world));
  }
  await world.barrier();
  for (const shape of pipelineShapes) yield* pipelineRows(world, shape);
}

async function kernelSpeed({ build, work, unit }: SpeedCase, world: PartContext["world"]): Promise<string> {
  const f = new Fusion();
  f.output(build(f));
  const executor = await MultiDeviceExecutor.create(f, { devices: 1, on: soloBackend(world) });
  try {
    const inputs = noise(f);
    const times: number[] = [];
    for (let i = 0; i < 8; i++) {
      const { report, program } = await tracedRun(executor, inputs);
      times.push(durations(report, program).reduce((total, each) => total + each, 0));
    }
    const best = Math.min(...times);
    const rate = work / best / (unit === "GB/s" ? 1e6 : 1e9);
    return `${rate.toFixed(0)} ${unit} (${best.toFixed(3)} ms, best of 8)`;
  } finally {
    await executor.close();
  }
}

async function tracedRun(
  executor: MultiDeviceExecutor,
  inputs: readonly Tensor[],
): Promise<{ report: RunReport; program: Program }> {
  let got: { report: RunReport; program: Program } | null = null;
  await executor.run(inputs, { gather: false, onReport: (report, program) => (got = { report, program }) });
  if (got === null) throw new Error("the run gave no report");
  return got;
}

/** Milliseconds of the rank's launches and copies. */
function durations({ trace }: RunReport, { ranks }: Program): readonly number[] {
  return trace.flatMap(({ rank, command, start, end }) => {
    const { kind } = at(at(ranks, rank).commands, command);
    return kind === "launch" || kind === "copy" ? [end - start] : [];
  });
}
