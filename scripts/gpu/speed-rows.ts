/**
 * Measures rates of single kernels on this rank's GPU, and times of all-gather + matmul over all GPUs, by CUDA events
 * and by the host's clock.
 */
import { createCudaBackend } from "../../src/cuda.ts";
import { soloRendezvous } from "../../src/backends/cuda/world.ts";
import type { RunReport } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, gelu, linear, matmul, permute, set, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { pipelineRows, pipelineShapes } from "./pipeline-rows.ts";
import { noise } from "./noise.ts";
import { type PartContext, type Row, rowOf } from "./rows.ts";

interface SpeedCase {
  readonly name: string;
  readonly build: (f: Fusion) => TensorView;
  /** Bytes moved, or floating-point operations. */
  readonly work: number;
  readonly unit: "GB/s" | "TFLOP/s";
}

const [rows, columns] = [16_384, 8192] as const;
const elements = rows * columns;
const square = 8192;

const kernelCases: readonly SpeedCase[] = [
  {
    name: "copy of bfloat16",
    build: (f) => set(f.input([rows, columns], "bfloat16")),
    work: 4 * elements,
    unit: "GB/s",
  },
  {
    name: "transposed copy of bfloat16",
    build: (f) => set(permute(f.input([rows, columns], "bfloat16"), [1, 0])),
    work: 4 * elements,
    unit: "GB/s",
  },
  {
    name: "add of bfloat16",
    build: (f) => add(f.input([rows, columns], "bfloat16"), f.input([rows, columns], "bfloat16")),
    work: 6 * elements,
    unit: "GB/s",
  },
  {
    name: "gelu of bfloat16",
    build: (f) => gelu(f.input([rows, columns], "bfloat16")),
    work: 4 * elements,
    unit: "GB/s",
  },
  { name: "gelu of float", build: (f) => gelu(f.input([rows, columns], "float")), work: 8 * elements, unit: "GB/s" },
  {
    name: "sum of rows",
    build: (f) => sum(f.input([rows, columns], "bfloat16"), [1]),
    work: 2 * elements,
    unit: "GB/s",
  },
  {
    name: "sum of columns",
    build: (f) => sum(f.input([rows, columns], "bfloat16"), [0]),
    work: 2 * elements,
    unit: "GB/s",
  },
  {
    name: "sum of 4 slots",
    build: (f) => sum(f.input([4, rows / 4, columns], "bfloat16"), [0]),
    work: 2.5 * elements,
    unit: "GB/s",
  },
  {
    name: "sum of all",
    build: (f) => sum(f.input([rows, columns], "bfloat16"), [0, 1]),
    work: 2 * elements,
    unit: "GB/s",
  },
  {
    name: `matmul of bfloat16 ${square}^3`,
    build: (f) => matmul(f.input([square, square], "bfloat16"), f.input([square, square], "bfloat16")),
    work: 2 * square ** 3,
    unit: "TFLOP/s",
  },
  {
    name: `linear with bias of bfloat16 ${square}^3`,
    build: (f) =>
      linear(
        f.input([square, square], "bfloat16"),
        f.input([square, square], "bfloat16"),
        f.input([square], "bfloat16"),
      ),
    work: 2 * square ** 3,
    unit: "TFLOP/s",
  },
  {
    name: "matmul of float 4096^3",
    build: (f) => matmul(f.input([4096, 4096], "float"), f.input([4096, 4096], "float")),
    work: 2 * 4096 ** 3,
    unit: "TFLOP/s",
  },
];

export async function* speedRows({ world }: PartContext): AsyncGenerator<Row> {
  if (world.rank === 0) {
    for (const each of kernelCases) yield await rowOf(each.name, () => kernelSpeed(each, world.localRank));
  }
  await world.barrier();
  for (const shape of pipelineShapes) yield* pipelineRows(world, shape);
}

async function kernelSpeed({ build, work, unit }: SpeedCase, localRank: number): Promise<string> {
  const f = new Fusion();
  f.output(build(f));
  const on = createCudaBackend({ rendezvous: { ...soloRendezvous(), localRank } });
  const executor = await MultiDeviceExecutor.create(f, { devices: 1, on });
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
