/** The kernels whose rates speed-rows.ts measures, and the norms of norms.ts. */
import type { Fusion } from "../../src/ir/api/fusion.ts";
import {
  add,
  gelu,
  layerNorm,
  linear,
  matmul,
  neg,
  permute,
  rmsNorm,
  set,
  softmax,
  sum,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";

export interface SpeedCase {
  readonly name: string;
  readonly build: (f: Fusion) => TensorView;
  /** Bytes moved, or floating-point operations. */
  readonly work: number;
  readonly unit: "GB/s" | "TFLOP/s";
}

const [rows, columns] = [16_384, 8192] as const;
const elements = rows * columns;
const square = 8192;

export const kernelCases: readonly SpeedCase[] = [
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

export type Norm = (x: TensorView, vector: () => TensorView) => TensorView;

export const norms: Readonly<Record<string, Norm>> = {
  // A kernel that reads and writes each element once; a set would be a copy without a kernel.
  copy: (x) => neg(x),
  layerNorm: (x, vector) => layerNorm(x, vector(), vector()),
  rmsNorm: (x, vector) => rmsNorm(x, vector()),
  softmax: (x) => softmax(x, 1),
};
