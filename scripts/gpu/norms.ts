/**
 * Norms and softmax of bfloat16 on one GPU, beside a copy of the same bytes and PyTorch's fused kernels in the same run:
 * microseconds of the GPU, without the host's. Braid and PyTorch take turns. `--out` writes all figures.
 *
 *     sh braid-offline/braid --script scripts/gpu/norms.ts 1 --python python3 --out norms.json
 */
import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { kernelSteps } from "../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import { type Gpu, openGpu } from "../../src/backends/cuda/gpu.ts";
import { createDeviceMemory } from "../../src/backends/cuda/memory/device-memory.ts";
import { pinnedBlock } from "../../src/backends/cuda/memory/host-blocks.ts";
import { createResources, type Resources } from "../../src/backends/cuda/resources.ts";
import { streamIsIdle } from "../../src/backends/cuda/run/stuck/wait.ts";
import type { Operand } from "../../src/commands/kernel.ts";
import { compile } from "../../src/compile/compile.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { dtypes } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { median } from "../../bench/harness/figures.ts";
import { onGpus, type RankWork } from "../../bench/harness/on-gpus.ts";
import { useGpu } from "./one-gpu.ts";
import { type Norm, norms } from "./speed-cases.ts";
import { elementCount } from "../../src/numerics/tensor/host-tensor.ts";

const shapes = [
  [2048, 12_288],
  [4096, 8192],
  [8192, 4096],
  [16_384, 1024],
  [2048, 16_384],
  [2048, 32_768],
] as const;

/** Tensors that calls use in turn, so that none is in the GPU's cache when its turn comes. */
const sets = 4;
const turns = 3;
const pieceBytes = 2 ** 21;

interface Figure {
  readonly op: string;
  readonly rows: number;
  readonly columns: number;
  readonly kernels: number;
  readonly us: number;
  readonly torchUs: number;
}

interface Bench {
  /** Median microseconds of the norm, and how many kernels it is. */
  readonly measure: (norm: Norm, rows: number, columns: number) => { readonly us: number; readonly kernels: number };
}

function createBench(gpu: Gpu, resources: Resources): Bench {
  const memory = createDeviceMemory(gpu);
  const { blocks, modules, stream, timeOf } = useGpu(gpu, resources);
  const random = createRandom(7);
  const piece = pinnedBlock(gpu, pieceBytes);
  const words = new Uint16Array(piece.buffer);
  // Of moderate size, of either sign.
  for (let i = 0; i < words.length; i++) words[i] = (random.uint32() & 0x80ff) | ((0x3e + random.integer(2)) << 8);
  const fill = (address: number, bytes: number): void => {
    for (let offset = 0; offset < bytes; offset += pieceBytes) {
      gpu.call.cuMemcpyHtoDAsync_v2(address + offset, piece.address, Math.min(pieceBytes, bytes - offset), stream);
    }
    while (!streamIsIdle(gpu, stream));
  };
  return {
    measure: (norm, rows, columns) => {
      const held = createResources();
      const f = new Fusion();
      const x = f.input([rows, columns], "bfloat16");
      f.output(norm(x, () => f.input([columns], "bfloat16")));
      const kernel = at(compile(f, { devices: 1, verify: "off" }).program.kernels, 0);
      const place = (operand: Operand): number =>
        held.own(memory.allocate(elementCount(operand.shape) * dtypes[operand.dtype].bytes, "norms")).address;
      const { steps, scratchBytes } = kernelSteps(kernel, () => 256);
      const scratch = held.own(memory.allocate(scratchBytes, "scratch")).address;
      const calls = Array.from({ length: sets }, () => {
        const [inputs, outputs] = [kernel.inputs.map(place), kernel.outputs.map(place)];
        kernel.inputs.forEach(({ shape }, i) => {
          fill(at(inputs, i), 2 * elementCount(shape));
        });
        return steps.map((step) => {
          if (step.kind !== "kernel") throw new Error("a norm has no GEMM");
          const pointers = step.source.parameters.map((parameter) => {
            if (parameter.kind === "origin") return 0;
            if (parameter.kind === "scratch") return scratch + parameter.offset;
            return at(parameter.kind === "input" ? inputs : outputs, parameter.position);
          });
          return modules.prepareLaunch(step.source, pointers, stream, blocks);
        });
      });
      let next = 0;
      const us = timeOf(() => {
        for (const launch of at(calls, next++ % sets)) launch();
      });
      held[Symbol.dispose]();
      return { us, kernels: steps.length };
    },
  };
}

interface Torch {
  readonly measure: (request: object) => Promise<number>;
  readonly close: () => void;
}

/** Microseconds of PyTorch, whose process answers a line with a line. */
function openTorch(python: string): Torch {
  const script = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../bench/peers/torch_norms.py");
  const child = spawn(python, [script], { stdio: ["pipe", "pipe", "inherit"] });
  const lines: AsyncIterator<string> = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    measure: async (request) => {
      child.stdin.write(`${JSON.stringify({ ...request, sets })}\n`);
      const line = await lines.next();
      if (line.done === true) throw new Error(`${python} ended: it needs PyTorch and a GPU`);
      const answer: unknown = JSON.parse(line.value);
      return typeof answer === "object" && answer !== null && "us" in answer ? Number(answer.us) : NaN;
    },
    close: () => child.stdin.end(),
  };
}

async function measureNorms({ world, flags, write }: RankWork): Promise<number> {
  const resources = createResources();
  const bench = createBench(openGpu(world.rank, world.localRank), resources);
  const torch = openTorch(flags.python ?? "python3");
  const found: Figure[] = [];
  for (const [rows, columns] of shapes) {
    let copied = NaN;
    for (const [op, norm] of Object.entries(norms)) {
      const own: { us: number; kernels: number }[] = [];
      const theirs: number[] = [];
      for (let turn = 0; turn < turns; turn++) {
        own.push(bench.measure(norm, rows, columns));
        theirs.push(await torch.measure({ op, rows, columns }));
      }
      const { kernels } = at(own, 0);
      const [us, torchUs] = [median(own.map((each) => each.us)), median(theirs)];
      if (op === "copy") copied = Math.min(us, torchUs);
      found.push({ op, rows, columns, kernels, us, torchUs });
      console.log(
        `${op.padEnd(10)} ${rows} x ${columns}: ${us.toFixed(1)} us, ${kernels} kernels, ${((100 * copied) / us).toFixed(0)} % of a copy; PyTorch ${torchUs.toFixed(1)} us, ratio ${(us / torchUs).toFixed(2)}`,
      );
    }
  }
  torch.close();
  resources[Symbol.dispose]();
  write({ found });
  return 0;
}

await onGpus({ url: import.meta.url, timeout: 60_000, flags: ["python"], rank: measureNorms });
