/**
 * CPU time of kernels on one thread beside numpy with its own BLAS: `npx jiti bench/beside-numpy.ts`. Each figure is the least
 * of 25 rounds, in milliseconds of the process's own time, so that other load counts little. In a round, all kernels run
 * once: a ratio to the copy (`TypedArray.set` of 64 MiB into memory that was written before) is of the least times, and
 * beside it the median over the rounds. GEMMs and attention use a BLAS of the system if there is one (`braid doctor`).
 * numpy's part needs `python3` with numpy.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findBlas } from "../src/backends/cpu/blas/blas-library.ts";
import { exp, gelu, layerNorm, matmul, rmsNorm, sdpa, set, silu, softmax } from "../src/ir/api/ops.ts";
import type { TensorView } from "../src/ir/api/tensor-view.ts";
import type { DType } from "../src/numerics/dtype.ts";
import { at } from "../src/support/invariant.ts";
import { firstKernel, kernelCall } from "./harness/kernel-call.ts";

interface Case {
  readonly shapes: readonly (readonly number[])[];
  readonly dtype?: DType;
  readonly op: (...inputs: readonly TensorView[]) => TensorView;
}

const elements = [[4096, 4096]];
const matrices = [
  [2048, 2048],
  [2048, 2048],
];
const heads = [16, 512, 64];
const first =
  (op: (x: TensorView) => TensorView): Case["op"] =>
  (...inputs) =>
    op(at(inputs, 0));
const product: Case["op"] = (...inputs) => matmul(at(inputs, 0), at(inputs, 1));

/** By the names that beside_numpy.py prints. */
const cases: Readonly<Record<string, Case>> = {
  copy: { shapes: elements, op: first(set) },
  exp: { shapes: elements, op: first(exp) },
  gelu: { shapes: elements, op: first((x) => gelu(x)) },
  silu: { shapes: elements, op: first(silu) },
  layerNorm: { shapes: elements, op: first((x) => layerNorm(x)) },
  rmsNorm: { shapes: elements, op: first((x) => rmsNorm(x)) },
  softmax: { shapes: elements, op: first((x) => softmax(x, 1)) },
  "matmul float": { shapes: matrices, op: product },
  "matmul half": { shapes: matrices, dtype: "half", op: product },
  "matmul bfloat16": { shapes: matrices, dtype: "bfloat16", op: product },
  attention: {
    shapes: [heads, heads, heads],
    op: (...inputs) => sdpa(at(inputs, 0), at(inputs, 1), at(inputs, 2)).output,
  },
};

const blas = findBlas();

function callOf({ shapes, dtype = "float", op }: Case): () => void {
  const kernel = firstKernel(op, shapes, dtype);
  if (kernel !== undefined) return kernelCall(kernel, { blas });
  // A copy is no kernel.
  const [from, to] = [new Float32Array(2 ** 24).fill(1), new Float32Array(2 ** 24).fill(2)];
  return () => to.set(from);
}

function cpuTime(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The first calls run before their code is optimized, in the background. */
const [unmeasured, measured] = [3, 25];

/** By name, in milliseconds; none without numpy. */
function numpyTimes(): ReadonlyMap<string, number> {
  try {
    const text = execFileSync("python3", [fileURLToPath(new URL("beside_numpy.py", import.meta.url))], {
      encoding: "utf8",
    });
    const rows = text
      .trim()
      .split("\n")
      .map((line) => line.split("\t"));
    return new Map(rows.map(([name = "", time]) => [name, Number(time)]));
  } catch {
    return new Map();
  }
}

const numpy = numpyTimes();
const calls = Object.entries(cases).map(([name, each]) => ({ name, call: callOf(each) }));
const rounds = Array.from({ length: unmeasured + measured }, () => calls.map(({ call }) => cpuTime(call)));
const times = calls.map(({ name }, i) => {
  const own = rounds.slice(unmeasured).map((round) => ({ time: at(round, i), ratio: at(round, i) / at(round, 0) }));
  const ratios = own.map(({ ratio }) => ratio).toSorted((a, b) => a - b);
  return { name, time: Math.min(...own.map(({ time }) => time)), median: at(ratios, measured >> 1) };
});
const copy = at(times, 0).time;
console.log(`BLAS: ${blas?.file ?? "none"}`);
console.table(
  times.map(({ name, time, median }) => ({
    kernel: name,
    "CPU ms": Number(time.toPrecision(3)),
    "of a copy": (time / copy).toFixed(1),
    median: median.toFixed(1),
    numpy: numpy.get(name)?.toPrecision(3) ?? "",
    "of numpy": numpy.has(name) ? (time / (numpy.get(name) ?? NaN)).toFixed(2) : "",
  })),
);
