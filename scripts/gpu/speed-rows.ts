/** Rates of single kernels on this rank's GPU, and times of the all-gather + matmul over all, from CUDA events and from the host's clock. */
import { createCudaBackend } from "../../src/cuda.ts";
import { soloRendezvous } from "../../src/backends/cuda/world.ts";
import type { RunReport } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, gelu, linear, matmul, permute, set, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { emptyTensor, type Tensor } from "../../src/numerics/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { median, type PartContext, type Row, rowOf } from "./rows.ts";

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
  for (const idiom of ["nccl", "cuda"] as const) {
    for (const shape of [
      { m: 32_768, k: 16_384, n: 8192 },
      { m: 8192, k: 8192, n: 8192 },
      { m: 16_384, k: 2048, n: 1024 },
    ]) {
      const name = `ring allgather + matmul, ${idiom}, m ${shape.m} k ${shape.k} n ${shape.n}`;
      yield await rowOf(name, () => pipelineSpeed(world, idiom, shape));
      if (world.signal.aborted) return;
    }
  }
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

interface Shape {
  readonly m: number;
  readonly k: number;
  readonly n: number;
}

async function pipelineSpeed(world: PartContext["world"], idiom: "nccl" | "cuda", { m, k, n }: Shape): Promise<string> {
  const devices = world.worldSize;
  const f = new Fusion();
  const a = f.input([devices, m / devices, k], "bfloat16");
  const w = f.input([n, k], "bfloat16");
  const c = linear(a, w);
  f.output(c);
  for (const tensor of [a, w, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  const on = createCudaBackend({ rendezvous: world, graph: "on", timeout: 30_000 });
  const executor = await MultiDeviceExecutor.create(f, {
    devices,
    on,
    communicatorBackend: idiom,
    localRanks: [world.rank],
  });
  try {
    const inputs = noise(f);
    const traced = await tracedRun(executor, inputs);
    const kernels = durations(traced.report, traced.program).reduce((total, each) => total + each, 0);
    const span = Math.max(...traced.report.trace.map(({ end }) => end));
    // Runs of the executor also move inputs and outputs: only the report's time counts.
    const times: number[] = [];
    for (let i = 0; i < 6; i++) {
      await world.barrier();
      const { report } = await plainRun(executor, inputs);
      times.push(report);
    }
    const flops = 2 * m * k * n;
    return `eager traced ${span.toFixed(3)} ms (its kernels ${kernels.toFixed(3)} ms, ${(flops / kernels / 1e9).toFixed(0)} TFLOP/s); whole calls ${median(times).toFixed(1)} ms with copies to and from the host`;
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

async function plainRun(executor: MultiDeviceExecutor, inputs: readonly Tensor[]): Promise<{ report: number }> {
  const start = performance.now();
  await executor.run(inputs, { gather: false });
  return { report: performance.now() - start };
}

/** Milliseconds of the rank's launches and copies. */
function durations({ trace }: RunReport, { ranks }: Program): readonly number[] {
  return trace.flatMap(({ rank, command, start, end }) => {
    const { kind } = at(at(ranks, rank).commands, command);
    return kind === "launch" || kind === "copy" ? [end - start] : [];
  });
}

/** Random bits whose bfloat16 and float values are of moderate size; a piece of them, repeated: drawing gigabytes would take minutes. */
function noise(f: Fusion): readonly Tensor[] {
  const data = f.data();
  const random = createRandom(7);
  const piece = Uint16Array.from(
    { length: 1 << 20 },
    () => (random.uint32() & 0x80ff) | ((0x3e + random.integer(2)) << 8),
  );
  return data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    const made = emptyTensor(tensor.dtype, shapeOf(tensor, new Map()));
    const words = new Uint16Array(made.data.buffer, made.data.byteOffset, made.data.byteLength / 2);
    for (let offset = 0; offset < words.length; offset += piece.length) {
      words.set(piece.subarray(0, Math.min(piece.length, words.length - offset)), offset);
    }
    return made;
  });
}
