/**
 * Times kernels that read and write memory, in GB/s: the bytes of all elements read and written, over the median time
 * of one call, on one thread. The first task, `TypedArray.set` of 64 MiB, shows what this machine copies in the same
 * run. Each kernel runs as WebAssembly SIMD, if it has that form, and as generated JavaScript.
 */
import type { Kernel } from "../src/commands/kernel.ts";
import { layerNorm, softmax } from "../src/ir/api/ops.ts";
import type { TensorView } from "../src/ir/api/tensor-view.ts";
import type { DType } from "../src/numerics/dtype.ts";
import { invariant } from "../src/support/invariant.ts";
import { bytesMoved, firstKernel, kernelCall, operandOf } from "./harness/kernel-call.ts";
import type { Suite, Task } from "./harness/suite.ts";

const million = 2 ** 20;

function add(dtype: DType, shape: readonly number[], strides?: readonly number[]): Kernel {
  const inputs = [operandOf(dtype, shape), operandOf(dtype, shape, strides)];
  return { kind: "binary", op: "add", inputs, outputs: [operandOf(dtype, shape)] };
}

function cast(from: DType, to: DType, elements: number): Kernel {
  return { kind: "cast", inputs: [operandOf(from, [elements])], outputs: [operandOf(to, [elements])] };
}

function sum(dtype: DType, axis: 0 | 1): Kernel {
  const shape = [4096, 1024];
  const outputs = [operandOf(dtype, shape.toSpliced(axis, 1))];
  return { kind: "reduction", op: "sum", axes: [axis], inputs: [operandOf(dtype, shape)], outputs };
}

/** relu(x * y + x), rounded to the dtype after every step. */
function chain(dtype: DType, elements: number): Kernel {
  const value = { dtype, shape: [elements] };
  const whole = operandOf(dtype, [elements]);
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
  const whole = operandOf(dtype, [elements]);
  return { kind: "unary", op, inputs: [whole], outputs: [whole] };
}

function combine(parts: number, elements: number): Kernel {
  const whole = operandOf("float", [elements]);
  return { kind: "combine", op: "sum", inputs: Array.from({ length: parts }, () => whole), outputs: [whole] };
}

function unitOf(build: (x: TensorView) => TensorView, shape: readonly number[]): Kernel {
  const kernel = firstKernel(
    (...[x]) => {
      invariant(x !== undefined, "a unit has an input");
      return build(x);
    },
    [shape],
  );
  invariant(kernel !== undefined, "a unit is a kernel");
  return kernel;
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

export function pointwiseSuite(): Suite {
  const copied = new Float32Array(2 * 16 * million).fill(1);
  const yardstick: Task = {
    name: "TypedArray.set, float, 16 M",
    run: () => copied.set(copied.subarray(0, 16 * million), 16 * million),
    work: { amount: copied.byteLength, unit: "GB/s" },
  };
  const tasks = cases.flatMap(([name, kernel]) =>
    (["always", "never"] as const).map((simd): Task => {
      let call: (() => void) | null = null;
      return {
        name: `${name}${simd === "always" ? "" : ", JavaScript"}`,
        run: () => call?.(),
        work: { amount: bytesMoved(kernel), unit: "GB/s" },
        // Created when its turn comes, so that the memories of all tasks are not alive at once.
        options: { beforeAll: () => void (call = kernelCall(kernel, { simd })), afterAll: () => void (call = null) },
      };
    }),
  );
  return {
    name: "pointwise kernels and reductions",
    options: { time: 200, warmupTime: 100 },
    tasks: [yardstick, ...tasks],
  };
}
