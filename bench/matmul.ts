/**
 * Times GEMMs: GFLOP/s of the WebAssembly kernels by dtype and shape, and float 1024^3 with a BLAS of the system,
 * through Braid and directly, on one thread in the same run. That part needs an installed BLAS (`braid doctor` reports
 * it).
 */
import { type Blas, findBlas } from "../src/backends/cpu/blas/blas-library.ts";
import type { Kernel } from "../src/commands/kernel.ts";
import type { DType } from "../src/numerics/dtype.ts";
import { createRandom } from "../src/support/random.ts";
import { kernelCall, operandOf } from "./harness/kernel-call.ts";
import type { Suite, Task } from "./harness/suite.ts";

interface Case {
  readonly dtype: Exclude<DType, "bool">;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** linear: b is [N, K]. */
  readonly linear?: boolean;
}

const whole: Case = { dtype: "float", m: 1024, n: 1024, k: 1024 };

const cases: readonly Case[] = [
  whole,
  { ...whole, linear: true },
  { ...whole, dtype: "double" },
  { ...whole, dtype: "half" },
  { ...whole, dtype: "bfloat16" },
  { ...whole, dtype: "int" },
  { dtype: "int64", m: 512, n: 512, k: 512 },
  { dtype: "float", m: 256, n: 256, k: 256 },
  { dtype: "float", m: 64, n: 64, k: 64 },
  { dtype: "float", m: 16, n: 16, k: 16 },
  { dtype: "float", m: 4, n: 4, k: 4 },
  { dtype: "float", m: 1, n: 1024, k: 1024 },
  { dtype: "float", m: 1, n: 1024, k: 1024, linear: true },
];

const work = ({ m, n, k }: Case): NonNullable<Task["work"]> => ({ amount: 2 * m * n * k, unit: "GFLOP/s" });

function kernelOf({ dtype, m, n, k, linear = false }: Case): Kernel {
  const inputs = [operandOf(dtype, [m, k]), operandOf(dtype, linear ? [n, k] : [k, n])];
  return { kind: linear ? "linear" : "matmul", inputs, outputs: [operandOf(dtype, [m, n])] };
}

export function matmulSuite(): Suite {
  const blas = findBlas();
  const tasks: readonly Task[] = cases.map((each) => {
    const { dtype, m, n, k, linear = false } = each;
    const name = `${linear ? "linear" : "matmul"} ${dtype} ${m} x ${k} by ${k} x ${n}`;
    return { name, run: kernelCall(kernelOf(each)), work: work(each) };
  });
  const ofBlas: readonly Task[] =
    blas === null
      ? []
      : [
          { name: `the first through ${blas.file}`, run: kernelCall(kernelOf(whole), { blas }), work: work(whole) },
          { name: `the same, ${blas.file} called directly`, run: direct(blas), work: work(whole) },
        ];
  return { name: "matmul", options: { time: 500, warmupTime: 300 }, tasks: [...tasks, ...ofBlas] };
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
