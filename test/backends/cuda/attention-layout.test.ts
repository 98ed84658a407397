/** Operands of attention as cuDNN takes them: axes merged by strides, and copied where that is not possible. */
import { describe, expect, it } from "vitest";
import { attentionGraph } from "../../../src/backends/cuda/attention/attention-graph.ts";
import { attentionLayout } from "../../../src/backends/cuda/attention/layout.ts";
import type { AttentionKernel } from "../../../src/commands/attention.ts";
import type { Operand } from "../../../src/commands/kernel.ts";
import { contiguousStrides } from "../../../src/commands/view.ts";
import type { CausalMask } from "../../../src/ir/ops/kinds/attention/attention.ts";

function operand(
  shape: readonly number[],
  strides = contiguousStrides(shape),
  dtype: Operand["dtype"] = "half",
): Operand {
  return { dtype, shape, strides };
}

function forward(
  q: Operand,
  k: Operand,
  causal: CausalMask | null = null,
  window: number | null = null,
): AttentionKernel {
  const rows = q.shape.slice(0, -1);
  const outputs = [operand(q.shape), operand(rows, undefined, "float")];
  return { kind: "sdpa", causal, window, scale: 0.5, inputs: [q, k, k], outputs };
}

const wide = Array.from({ length: 9 }, () => 256);

/** [dims, strides, offset of the copy] of each operand. */
function placed(kernel: AttentionKernel, alignments = wide): readonly (readonly unknown[])[] {
  const { inputs, outputs } = attentionLayout(kernel, alignments);
  return [...inputs, ...outputs].map(({ dims, strides, copy }) => [dims, strides, copy?.offset ?? null]);
}

describe("operands", () => {
  it("of grouped queries: heads that share keys follow each other", () => {
    expect(placed(forward(operand([2, 3, 4, 16, 8]), operand([2, 3, 1, 20, 8])))).toEqual([
      [[2, 12, 16, 8], [1536, 128, 8, 1], null],
      [[2, 3, 20, 8], [480, 160, 8, 1], null],
      [[2, 3, 20, 8], [480, 160, 8, 1], null],
      [[2, 12, 16, 8], [1536, 128, 8, 1], null],
      [[2, 12, 16, 1], [192, 16, 1, 1], null],
    ]);
  });

  it("without heads or batch, and with one row", () => {
    expect(placed(forward(operand([16, 8]), operand([20, 8]))).slice(0, 2)).toEqual([
      [[1, 1, 16, 8], [128, 128, 8, 1], null],
      [[1, 1, 20, 8], [160, 160, 8, 1], null],
    ]);
    expect(placed(forward(operand([3, 1, 8], [8, 999, 1]), operand([3, 5, 8])))[0]).toEqual([
      [1, 3, 1, 8],
      [24, 8, 8, 1],
      null,
    ]);
  });

  it("are read where a packed product has them", () => {
    const packed = [16 * 72, 8, 72, 1];
    expect(placed(forward(operand([2, 3, 16, 8], packed), operand([2, 3, 16, 8], packed)))[0]).toEqual([
      [2, 3, 16, 8],
      packed,
      null,
    ]);
  });

  it("are copied if the columns are apart, rows overlap or are not aligned, or axes do not merge", () => {
    const plain = operand([2, 16, 8]);
    for (const strides of [
      [128, 1, 16],
      [0, 8, 1],
      [129, 8, 1],
      [192, 12, 1],
    ]) {
      const kernel = forward(operand([2, 16, 8], strides), plain);
      expect(placed(kernel)[0], String(strides)).toEqual([[1, 2, 16, 8], [256, 128, 8, 1], 0]);
      expect(placed(kernel)[1]).toEqual([[1, 2, 16, 8], [256, 128, 8, 1], null]);
    }
    expect(placed(forward(plain, plain), [8, 256, 8, 256, 256]).map(([, , offset]) => offset)).toEqual([
      0,
      null,
      512,
      null,
      null,
    ]);
    // Heads that share keys along two axes with another one in between.
    const kernel = forward(operand([2, 3, 4, 16, 8]), operand([1, 3, 1, 16, 8]));
    expect(placed(kernel)).toEqual([
      [[1, 24, 16, 8], [3072, 128, 8, 1], 0],
      [[1, 3, 16, 8], [384, 128, 8, 1], null],
      [[1, 3, 16, 8], [384, 128, 8, 1], null],
      [[1, 24, 16, 8], [3072, 128, 8, 1], 6144],
      [[1, 24, 16, 1], [384, 16, 1, 1], 12_288],
    ]);
    const { inputs } = attentionLayout(kernel, wide);
    expect(inputs[0]?.copy?.strides).toEqual([512, 1024, 128, 8, 1]);
  });

  it("of keys that the batch shares: the batch is heads", () => {
    expect(placed(forward(operand([2, 3, 16, 8]), operand([1, 3, 16, 8]))).slice(0, 2)).toEqual([
      [[3, 2, 16, 8], [128, 384, 8, 1], null],
      [[3, 1, 16, 8], [128, 128, 8, 1], null],
    ]);
  });

  it("merge as most of them allow", () => {
    // Two axes that only merge with each other: [heads of two kinds, batch] in memory.
    const strides = [1024, 128, 2048, 8, 1];
    const kernel = forward(operand([2, 8, 2, 16, 8], strides), operand([2, 8, 2, 16, 8], strides));
    expect(placed(kernel)[0]).toEqual([[16, 2, 16, 8], [128, 2048, 8, 1], null]);
  });
});

it("makes the graphs that cuDNN knows", () => {
  const names = (kernel: AttentionKernel): readonly string[] =>
    attentionGraph(kernel, "half", attentionLayout(kernel, wide)).ops.map((op) =>
      op.kind === "pointwise" ? op.mode : op.kind === "reduction" ? `${op.kind} ${op.operator}` : op.kind,
    );
  const [q, k] = [operand([2, 3, 16, 8]), operand([2, 1, 20, 8])];
  const softmax = ["reduction MAX", "SUB", "EXP", "reduction ADD", "LOG", "ADD", "DIV"];
  expect(names(forward(q, k))).toEqual(["matmul", "MUL", ...softmax, "matmul"]);
  const mask = ["GEN_INDEX", "GEN_INDEX", "CMP_GE", "BINARY_SELECT"];
  expect(names(forward(q, k, "topLeft"))).toEqual(["matmul", "MUL", ...mask, ...softmax, "matmul"]);
  const late = ["GEN_INDEX", "GEN_INDEX", "ADD", "SUB", "CMP_GE", "BINARY_SELECT"];
  expect(names(forward(q, k, "bottomRight"))).toEqual(["matmul", "MUL", ...late, ...softmax, "matmul"]);
  const window = ["GEN_INDEX", "GEN_INDEX", "ADD", "CMP_GT", "BINARY_SELECT"];
  expect(names(forward(q, k, "topLeft", 4))).toEqual(["matmul", "MUL", ...mask, ...window, ...softmax, "matmul"]);
  const numbers = attentionGraph(forward(q, k, "bottomRight", 7), "half", attentionLayout(forward(q, k), wide)).tensors;
  // 16 rows and 20 keys: the last row sees keys 13 to 19.
  expect(numbers.find(({ name }) => name === "window")?.memory).toEqual({ kind: "number", value: 3 });
  const backward = (keys: Operand): AttentionKernel => ({
    kind: "sdpaBackward",
    causal: "topLeft",
    window: null,
    scale: 0.5,
    inputs: [q, q, keys, keys, q, operand([2, 3, 16], undefined, "float")],
    outputs: [q, keys, keys],
  });
  const totals = ["MUL", "reduction ADD", "MUL"];
  const probabilities = ["matmul", "MUL", "SUB", ...mask, "EXP", "reshape"];
  const scores = ["matmul", "SUB", "MUL", "MUL", "reshape"];
  expect(names(backward(operand([2, 3, 20, 8])))).toEqual([
    ...totals,
    ...probabilities,
    "matmul",
    ...scores,
    "matmul",
    "reshape",
    "matmul",
  ]);
  expect(names(backward(k))).toEqual([
    ...totals,
    ...probabilities,
    "matmul",
    "reduction ADD",
    ...scores,
    "matmul",
    "reduction ADD",
    "reshape",
    "matmul",
  ]);
});
