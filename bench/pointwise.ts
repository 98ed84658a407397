/**
 * Times kernels that read and write memory, in GB/s: the bytes of all elements read and written, over the median time
 * of one call, on one thread. The first task, `TypedArray.set` of 64 MiB, shows what this machine copies in the same
 * run. Each kernel runs as WebAssembly SIMD, if it has that form, and as generated JavaScript.
 */
import { Bench } from "tinybench";
import type { Kernel, Operand } from "../src/commands/kernel.ts";
import { compile } from "../src/compile/compile.ts";
import { Fusion } from "../src/ir/api/fusion.ts";
import { layerNorm, softmax } from "../src/ir/api/ops.ts";
import type { TensorView } from "../src/ir/api/tensor-view.ts";
import { createKernelLibrary, scratchBytes } from "../src/kernels/kernel-library.ts";
import { type DType, dtypes } from "../src/numerics/dtype.ts";
import { elementsOf, storageView } from "../src/numerics/tensor/storage.ts";
import { at } from "../src/support/invariant.ts";
import { createWasmMemory } from "../src/support/webassembly.ts";

const million = 2 ** 20;

function operand(dtype: DType, shape: readonly number[], strides = rowMajor(shape)): Operand {
  return { dtype, shape, strides };
}

function rowMajor(shape: readonly number[]): readonly number[] {
  return shape.map((_, axis) => shape.slice(axis + 1).reduce((product, extent) => product * extent, 1));
}

function add(dtype: DType, shape: readonly number[], strides = rowMajor(shape)): Kernel {
  const inputs = [operand(dtype, shape), operand(dtype, shape, strides)];
  return { kind: "binary", op: "add", inputs, outputs: [operand(dtype, shape)] };
}

function cast(from: DType, to: DType, elements: number): Kernel {
  return { kind: "cast", inputs: [operand(from, [elements])], outputs: [operand(to, [elements])] };
}

function sum(dtype: DType, axis: 0 | 1): Kernel {
  const shape = [4096, 1024];
  const outputs = [operand(dtype, shape.toSpliced(axis, 1))];
  return { kind: "reduction", op: "sum", axes: [axis], inputs: [operand(dtype, shape)], outputs };
}

/** relu(x * y + x), rounded to the dtype after every step. */
function chain(dtype: DType, elements: number): Kernel {
  const value = { dtype, shape: [elements] };
  const whole = operand(dtype, [elements]);
  return {
    kind: "unit",
    inputs: [whole, whole],
    outputs: [whole],
    values: [value, value, value, value, value],
    steps: [
      { kind: "Binary", op: "mul", inputs: [0, 1], output: 2 },
      { kind: "Binary", op: "add", inputs: [2, 0], output: 3 },
      { kind: "Unary", op: "relu", inputs: [3], output: 4 },
    ],
    results: [4],
  };
}

function unary(op: "exp" | "gelu", dtype: DType, elements: number): Kernel {
  const whole = operand(dtype, [elements]);
  return { kind: "unary", op, inputs: [whole], outputs: [whole] };
}

function combine(parts: number, elements: number): Kernel {
  const whole = operand("float", [elements]);
  return { kind: "combine", op: "sum", inputs: Array.from({ length: parts }, () => whole), outputs: [whole] };
}

/** The kernel of a Fusion of one unit. */
function unitOf(build: (x: TensorView) => TensorView, shape: readonly number[]): Kernel {
  const f = new Fusion();
  f.output(build(f.input(shape, "float")));
  return at(compile(f, { devices: 1, verify: "off" }).program.kernels, 0);
}

const cases: readonly (readonly [name: string, kernel: Kernel])[] = [
  ["add float, 16 M", add("float", [16 * million])],
  ["add float, 64 K", add("float", [2 ** 16])],
  ["add double, 4 M", add("double", [4 * million])],
  ["add int64, 4 M", add("int64", [4 * million])],
  ["add half, 4 M", add("half", [4 * million])],
  ["add bfloat16, 4 M", add("bfloat16", [4 * million])],
  ["add a row, float 2048 x 2048", add("float", [2048, 2048], [0, 1])],
  ["add a transposed one, float 1000 x 1000", add("float", [1000, 1000], [1, 1000])],
  ["add a transposed one, float 2048 x 2048", add("float", [2048, 2048], [1, 2048])],
  ["cast half to float, 4 M", cast("half", "float", 4 * million)],
  ["cast float to half, 4 M", cast("float", "half", 4 * million)],
  ["relu(x * y + x) float, 4 M", chain("float", 4 * million)],
  ["relu(x * y + x) bfloat16, 4 M", chain("bfloat16", 4 * million)],
  ["sum of rows, float 4096 x 1024", sum("float", 1)],
  ["sum of columns, float 4096 x 1024", sum("float", 0)],
  ["sum of rows, bfloat16 4096 x 1024", sum("bfloat16", 1)],
  ["combine 4 parts, float 4 M", combine(4, 4 * million)],
  ["exp float, 1 M", unary("exp", "float", million)],
  ["gelu float, 1 M", unary("gelu", "float", million)],
  ["layer norm, float 2048 x 4096", unitOf((x) => layerNorm(x), [2048, 4096])],
  ["softmax, float 2048 x 4096", unitOf((x) => softmax(x, 1), [2048, 4096])],
];

const bytes = new Map<string, number>();

/** GB/s of a task, from its median time; undefined for tasks of other benchmarks. */
export function gigabytesPerSecond(bench: Bench, name: string): number | undefined {
  const task = bench.getTask(name);
  const moved = bytes.get(name);
  if (moved === undefined || task?.result.state !== "completed") return undefined;
  return moved / task.result.latency.p50 / 1e6;
}

export async function benchPointwise(): Promise<Bench> {
  const bench = new Bench({ name: "pointwise kernels and reductions", time: 200, warmupTime: 100 });
  const copied = new Float32Array(2 * 16 * million).fill(1);
  const yardstick = "TypedArray.set, float, 16 M";
  bytes.set(yardstick, copied.byteLength);
  bench.add(yardstick, () => copied.set(copied.subarray(0, 16 * million), 16 * million));
  for (const [name, kernel] of cases) {
    for (const simd of ["always", "never"] as const) {
      const task = `${name}${simd === "always" ? "" : ", JavaScript"}`;
      bytes.set(
        task,
        [...kernel.inputs, ...kernel.outputs].reduce((total, each) => total + bytesOf(each), 0),
      );
      let run: (() => void) | null = null;
      // Created when its turn comes, so that the memories of all tasks are not alive at once.
      bench.add(task, () => run?.(), {
        beforeAll: () => {
          run = prepare(kernel, simd);
        },
        afterAll: () => {
          run = null;
        },
      });
    }
  }
  await bench.run();
  return bench;
}

/** Elements that are read repeatedly along an axis of stride 0 count once. */
function bytesOf({ dtype, shape, strides }: Operand): number {
  return shape.reduce((total, extent, axis) => total * (strides[axis] === 0 ? 1 : extent), dtypes[dtype].bytes);
}

function prepare(kernel: Kernel, simd: "always" | "never"): () => void {
  const needed = Math.ceil(scratchBytes(kernel) / 64) * 64;
  let next = needed;
  const addresses = [...kernel.inputs, ...kernel.outputs].map((each) => {
    const address = next;
    next += Math.ceil(bytesOf(each) / 64) * 64;
    return address;
  });
  const memory = createWasmMemory(next);
  for (const [i, { dtype, ...rest }] of kernel.inputs.entries()) {
    const count = bytesOf({ dtype, ...rest }) / dtypes[dtype].bytes;
    const elements = elementsOf(dtype, storageView(dtype, memory.buffer, addresses[i] ?? 0, count));
    for (let j = 0; j < count; j++) elements.set(j, dtype === "int64" ? BigInt(j % 97) : (j % 97) / 64);
  }
  const run = createKernelLibrary({ memory, scratch: { address: 0, bytes: needed }, simd }).prepare(kernel);
  const inputs = addresses.slice(0, kernel.inputs.length);
  const outputs = addresses.slice(kernel.inputs.length);
  return () => run(inputs, outputs);
}
