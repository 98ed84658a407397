/**
 * The WebAssembly matrix kernels: GFLOP/s by dtype and shape, and float 1024^3 beside one thread of OpenBLAS in the same run.
 * OpenBLAS takes part if the package koffi and libopenblas are installed: `npm i --no-save koffi`.
 */
import { createRequire } from "node:module";
import { Bench } from "tinybench";
import type { Kernel } from "../src/commands/kernel.ts";
import { createKernelLibrary, scratchBytes } from "../src/kernels/kernel-library.ts";
import { narrowToBFloat16, narrowToHalf } from "../src/numerics/convert.ts";
import { type DType, dtypes } from "../src/numerics/dtype.ts";
import { storageView } from "../src/numerics/storage.ts";
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

/** GFLOP/s of a task, from its median time; undefined for tasks that are no products. */
export function gigaflops(bench: Bench, name: string): number | undefined {
  const task = bench.getTask(name);
  const count = flops.get(name);
  if (count === undefined || task?.result.state !== "completed") return undefined;
  return count / task.result.latency.p50 / 1e6;
}

export async function benchMatmul(): Promise<Bench> {
  const bench = new Bench({ name: "matmul", time: 500, warmupTime: 300 });
  for (const each of cases) bench.add(nameOf(each), prepare(each));
  const openBlas = loadOpenBlas();
  if (openBlas !== null) {
    flops.set(openBlas.name, 2 * 1024 ** 3);
    bench.add(openBlas.name, openBlas.run);
  }
  await bench.run();
  return bench;
}

function prepare({ dtype, m, n, k, linear = false }: Case): () => void {
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
  const run = createKernelLibrary({ memory, scratch: { address: scratch, bytes: needed } }).prepare(kernel);
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
      storageView(dtype, buffer, address, count).set(narrowToHalf(numbers));
      break;
    case "bfloat16":
      storageView(dtype, buffer, address, count).set(narrowToBFloat16(numbers));
      break;
    case "int":
      storageView(dtype, buffer, address, count).set(numbers.map((x) => x * 100));
      break;
    case "int64":
      storageView(dtype, buffer, address, count).set([...numbers].map((x) => BigInt(Math.trunc(x * 100))));
      break;
  }
}

type Native = (...values: readonly unknown[]) => unknown;

interface Koffi {
  load(path: string): { func(prototype: string): Native };
}

/** cblas_sgemm of 1024^3 on one thread; null where koffi or OpenBLAS is missing. */
function loadOpenBlas(): { readonly name: string; readonly run: () => void } | null {
  try {
    const koffi = createRequire(import.meta.url)("koffi") as Koffi;
    const library = koffi.load(process.platform === "darwin" ? "libopenblas.dylib" : "libopenblas.so.0");
    library.func("void openblas_set_num_threads(int)")(1);
    const core = String(library.func("const char *openblas_get_corename()")());
    const sgemm = library.func(
      "void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, _Inout_ float *, int)",
    );
    const n = 1024;
    const random = createRandom(1);
    const [a, b, c] = Array.from({ length: 3 }, () => Float32Array.from({ length: n * n }, () => random.float() - 0.5));
    const [rowMajor, plain] = [101, 111];
    const run = (): void => void sgemm(rowMajor, plain, plain, n, n, n, 1, a, n, b, n, 0, c, n);
    return { name: `OpenBLAS (${core} kernels, one thread) float 1024 x 1024 by 1024 x 1024`, run };
  } catch {
    return null;
  }
}
