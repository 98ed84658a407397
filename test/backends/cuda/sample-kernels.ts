/** One kernel of each form that the CUDA back end generates. Golden files hold their sources. */
import type { Kernel, UnitKernel } from "../../../src/commands/kernel.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { operand } from "../../kernels/run-kernel.ts";

function reduction(dtype: DType, shape: readonly number[], axis: number, op: "sum" | "amax"): Kernel {
  const kept = shape.filter((_, i) => i !== axis);
  return { kind: "reduction", op, axes: [axis], inputs: [operand(dtype, shape)], outputs: [operand(dtype, kept)] };
}

/** Of eight groups. */
function grouped(x: readonly number[], y: readonly number[], output: readonly number[]): Kernel {
  const operands = [operand("bfloat16", x), operand("bfloat16", y), operand("int64", [8]), operand("bfloat16", output)];
  return {
    kind: "unit",
    inputs: operands.slice(0, 3),
    outputs: operands.slice(3),
    values: operands.map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [{ kind: "GroupedMatmul", inputs: [0, 1, 2], output: 3 }],
    results: [3],
  };
}

function scaled(k: number, n: number, ofX: readonly number[], ofWeight: readonly number[]): UnitKernel {
  const operands = [
    operand("float8_e4m3fn", [96, k]),
    operand("float8_e5m2", [n, k]),
    operand("float", ofX),
    operand("float", ofWeight),
    operand("bfloat16", [96, n]),
  ];
  return {
    kind: "unit",
    inputs: operands.slice(0, 4),
    outputs: operands.slice(4),
    values: operands.map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [{ kind: "Linear", to: "bfloat16", inputs: [0, 1, 2, 3], output: 4 }],
    results: [4],
  };
}

const wide = [4096, 8192] as const;

/** gelu(x + bias) and its absolute value, both in bfloat16: one kernel with two outputs. */
const unit: UnitKernel = {
  kind: "unit",
  inputs: [operand("bfloat16", wide), operand("bfloat16", [8192])],
  outputs: [operand("bfloat16", wide), operand("float", wide)],
  values: [
    { dtype: "bfloat16", shape: wide },
    { dtype: "bfloat16", shape: [8192] },
    { dtype: "bfloat16", shape: [1, 8192] },
    { dtype: "bfloat16", shape: wide },
    { dtype: "bfloat16", shape: wide },
    { dtype: "float", shape: wide },
    { dtype: "float", shape: wide },
  ],
  steps: [
    { kind: "Broadcast", flags: [true, false], inputs: [1], output: 2 },
    { kind: "Binary", op: "add", inputs: [0, 2], output: 3 },
    { kind: "Unary", op: "gelu", inputs: [3], output: 4 },
    { kind: "Cast", to: "float", inputs: [4], output: 5 },
    { kind: "Unary", op: "abs", inputs: [5], output: 6 },
  ],
  results: [4, 6],
};

/** The distance to the largest element of the row, times the sum of the distances. */
const rows: UnitKernel = {
  kind: "unit",
  inputs: [operand("bfloat16", wide)],
  outputs: [operand("bfloat16", wide)],
  values: [
    { dtype: "bfloat16", shape: wide },
    { dtype: "bfloat16", shape: [4096] },
    { dtype: "bfloat16", shape: [4096, 1] },
    { dtype: "bfloat16", shape: wide },
    { dtype: "bfloat16", shape: [4096] },
    { dtype: "bfloat16", shape: [4096, 1] },
    { dtype: "bfloat16", shape: wide },
  ],
  steps: [
    { kind: "Reduction", op: "amax", axes: [1], inputs: [0], output: 1 },
    { kind: "Broadcast", flags: [false, true], inputs: [1], output: 2 },
    { kind: "Binary", op: "sub", inputs: [0, 2], output: 3 },
    { kind: "Reduction", op: "sum", axes: [1], inputs: [3], output: 4 },
    { kind: "Broadcast", flags: [false, true], inputs: [4], output: 5 },
    { kind: "Binary", op: "mul", inputs: [3, 5], output: 6 },
  ],
  results: [6],
};

const bf16 = operand("bfloat16", wide);

export const sampleKernels: Readonly<Record<string, Kernel>> = {
  "add-bfloat16": { kind: "binary", op: "add", inputs: [bf16, bf16], outputs: [bf16] },
  "add-bfloat16-odd-rows": {
    kind: "binary",
    op: "add",
    inputs: [operand("bfloat16", [30, 33]), operand("bfloat16", [30, 33], [0, 1])],
    outputs: [operand("bfloat16", [30, 33])],
  },
  "cast-double-to-int64": { kind: "cast", inputs: [operand("double", [1000])], outputs: [operand("int64", [1000])] },
  "divide-int": {
    kind: "binary",
    op: "div",
    inputs: [operand("int", [512]), operand("int", [512])],
    outputs: [operand("int", [512])],
  },
  "gelu-of-sum-and-abs": unit,
  "normalized-rows-bfloat16": rows,
  "sum-rows-half": reduction("half", [4096, 4096], 1, "sum"),
  "sum-columns-bfloat16-in-parts": reduction("bfloat16", [65_536, 512], 0, "sum"),
  // The partial results of four devices: a thread per column.
  "sum-slots-bfloat16": reduction("bfloat16", [4, 1024, 8192], 0, "sum"),
  "amax-scalar-double": reduction("double", [100_000], 0, "amax"),
  "combine-bfloat16": { kind: "combine", op: "sum", inputs: [bf16, bf16, bf16], outputs: [bf16] },
  // A slice of an Allreduce of four members.
  "combine-bfloat16-into-all": {
    kind: "combine",
    op: "sum",
    inputs: [bf16, bf16, bf16, bf16],
    outputs: [bf16, bf16, bf16, bf16],
  },
  // Operands along another axis than the result: by tiles.
  "neg-transposed-bfloat16": {
    kind: "unary",
    op: "neg",
    inputs: [operand("bfloat16", wide, [1, 4096])],
    outputs: [bf16],
  },
  "add-transposed-float": {
    kind: "binary",
    op: "add",
    inputs: [operand("float", [3, 100, 70], [7000, 1, 100]), operand("float", [3, 100, 70])],
    outputs: [operand("float", [3, 100, 70])],
  },
  "fill-int64": { kind: "fill", inputs: [], outputs: [operand("int64", [100])] },
  "scaled-rows-float8": scaled(64, 40, [96], [40]),
  // A last block of fewer rows, and lines of scales that are padded.
  "scaled-blocks-float8": scaled(384, 144, [96, 3], [2, 3]),
  "grouped-rows-bfloat16": grouped([8192, 4096], [8, 4096, 7168], [8192, 7168]),
  "grouped-terms-bfloat16": grouped([8192, 4096], [8192, 7168], [8, 4096, 7168]),
  "matmul-int": {
    kind: "matmul",
    inputs: [operand("int", [3, 70, 50]), operand("int", [3, 50, 40], [0, 1, 50])],
    outputs: [operand("int", [3, 70, 40])],
  },
  "matmul-half-adding": {
    kind: "matmul",
    inputs: [operand("half", [70, 50], [2, 140]), operand("half", [50, 40])],
    outputs: [operand("half", [70, 40])],
    accumulate: true,
  },
  "linear-bfloat16-with-addend": {
    kind: "linear",
    inputs: [
      operand("bfloat16", [70, 50]),
      operand("bfloat16", [40, 50]),
      operand("bfloat16", [40]),
      operand("bfloat16", [70, 40]),
    ],
    outputs: [operand("bfloat16", [70, 40])],
    addend: true,
  },
  "linear-float-broadcast-bias": {
    kind: "linear",
    inputs: [operand("float", [70, 50]), operand("float", [40, 50]), operand("float", [40], [0])],
    outputs: [operand("float", [70, 40])],
  },
};
