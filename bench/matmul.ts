/**
 * Times GEMMs: GFLOP/s of the WebAssembly kernels by dtype and shape, and float 1024^3 with a BLAS of the system,
 * through Braid and directly, on one thread in the same run. That part needs an installed BLAS (`braid doctor` reports
 * it).
 */
import { Bench } from "tinybench";
import { type Blas, findBlas } from "../src/backends/cpu/blas/blas-library.ts";
import { blasGemms } from "../src/backends/cpu/blas/blas-gemms.ts";
import type { Kernel } from "../src/commands/kernel.ts";
import { createKernelLibrary, scratchBytes } from "../src/kernels/kernel-library.ts";
import { floatToBFloat16, floatToHalf } from "../src/numerics/convert.ts";
import { type DType, dtypes } from "../src/numerics/dtype.ts";
import { storageView } from "../src/numerics/tensor/storage.ts";
import { createRandom } from "../src/support/random.ts";
import { createWasmMemory } from "../src/support/webassembly.ts";

interface Case {
  readonly dtype: Exclude<DType, "bool">;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** linear: b is [N, K]. */
  readonly linear?: boolean;
}

const cases: readonly Case[] = [
  { dtype: "float", m: 1024, n: 1024, k: 1024 },
  { dtype: "float", m: 1024, n: 1024, k: 1024, linear: true },
  { dtype: "double", m: 1024, n: 1024, k: 1024 },
  { dtype: "half", m: 1024, n: 1024, k: 1024 },
  { dtype: "bfloat16", m: 1024, n: 1024, k: 1024 },
  { dtype: "int", m: 1024, n: 1024, k: 1024 },
  { dtype: "int64", m: 512, n: 512, k: 512 },
  { dtype: "float", m: 256, n: 256, k: 256 },
  { dtype: "float", m: 64, n: 64, k: 64 },
  { dtype: "float", m: 16, n: 16, k: 16 },
  { dtype: "float", m: 4, n: 4, k: 4 },
  { dtype: "float", m: 1, n: 1024, k: 1024 },
  { dtype: "float", m: 1, n: 1024, k: 1024, linear: true },
];

const nameOf = ({ dtype, m, n, k, linear }: Case): string =>
  `${linear === true ? "linear" : "matmul"} ${dtype} ${m} x ${k} by ${k} x ${n}`;

const flops = new Map(cases.map((each) => [nameOf(each), 2 * each.m * each.n * each.k]));

/** GFLOP/s of a task, from its median time; undefined for tasks that are not GEMMs. */
export function gigaflops(bench: Bench, name: string): number | undefined {
  const task = bench.getTask(name);
  const count = flops.get(name);
  if (count === undefined || task?.result.state !== "completed") return undefined;
  return count / task.result.latency.p50 / 1e6;
}

export async function benchMatmul(): Promise<Bench> {
  const bench = new Bench({ name: "matmul", time: 500, warmupTime: 300 });
  for (const each of cases) bench.add(nameOf(each), prepare(each));
  const blas = findBlas();
  if (blas !== null) {
    const [throughBraid, alone] = [`the first through ${blas.file}`, `the same, ${blas.file} called directly`];
    for (const name of [throughBraid, alone]) flops.set(name, 2 * 1024 ** 3);
    bench.add(throughBraid, prepare({ dtype: "float", m: 1024, n: 1024, k: 1024 }, blas));
    bench.add(alone, direct(blas));
  }
  await bench.run();
  return bench;
}

function prepare({ dtype, m, n, k, linear = false }: Case, blas: Blas | null = null): () => void {
  const { bytes } = dtypes[dtype];
  const b = linear ? [n, k] : [k, n];
  const operand = (shape: readonly number[]): Kernel["inputs"][number] => ({
    dtype,
    shape,
    strides: [shape[1] ?? 1, 1],
  });
  const inputs = [operand([m, k]), operand(b)];
  const kernel: Kernel = { kind: linear ? "linear" : "matmul", inputs, outputs: [operand([m, n])] };
  const needed = scratchBytes(kernel);
  const places = [needed, m * k * bytes, k * n * bytes, m * n * bytes];
  const addresses = places.map((_, i) => places.slice(0, i).reduce((sum, size) => sum + Math.ceil(size / 64) * 64, 0));
  const [scratch = 0, ...operands] = addresses;
  const memory = createWasmMemory((addresses.at(-1) ?? 0) + m * n * bytes);
  fill(memory.buffer, dtype, operands[0] ?? 0, m * k);
  fill(memory.buffer, dtype, operands[1] ?? 0, k * n);
  const gemms = blas === null ? {} : { gemms: blasGemms(blas, memory.buffer) };
  const library = createKernelLibrary({ memory, scratch: { address: scratch, bytes: needed }, ...gemms });
  const run = library.prepare(kernel);
  const [from, to] = [operands.slice(0, 2), operands.slice(2)];
  return () => {
    run(from, to);
  };
}

/** Numbers in [-0.5, 0.5), small integers for integers. */
function fill(buffer: ArrayBufferLike, dtype: Case["dtype"], address: number, count: number): void {
  const random = createRandom(1);
  const numbers = Float32Array.from({ length: count }, () => random.float() - 0.5);
  switch (dtype) {
    case "double":
    case "float":
      storageView(dtype, buffer, address, count).set(numbers);
      break;
    case "half":
      storageView(dtype, buffer, address, count).set(Uint16Array.from(numbers, floatToHalf));
      break;
    case "bfloat16":
      storageView(dtype, buffer, address, count).set(Uint16Array.from(numbers, floatToBFloat16));
      break;
    case "int":
      storageView(dtype, buffer, address, count).set(numbers.map((x) => x * 100));
      break;
    case "int64":
      storageView(dtype, buffer, address, count).set([...numbers].map((x) => BigInt(Math.trunc(x * 100))));
      break;
  }
}

/** cblas_sgemm of 1024^3 on one thread, without Braid. */
function direct({ sgemm }: Blas): () => void {
  const n = 1024;
  const random = createRandom(1);
  const matrix = (): Float32Array => Float32Array.from({ length: n * n }, () => random.float() - 0.5);
  const [a, b, c] = [matrix(), matrix(), matrix()];
  const [rowMajor, plain] = [101, 111];
  return () => sgemm(rowMajor, plain, plain, n, n, n, 1, a, n, b, n, 0, c, n);
}
