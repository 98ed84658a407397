/** Fusions for one GPU: creation, random numbers, norms and gradients, as models use them. */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { gradients } from "../../src/ir/api/gradients.ts";
import {
  add,
  cast,
  dropout,
  embedding,
  full,
  gelu,
  iota,
  layerNorm,
  linear,
  mul,
  randomBits,
  rmsNorm,
  rope,
  silu,
  softmax,
  sum,
  uniform,
  unsqueeze,
  varMean,
  zeros,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { GpuCase } from "./single-gpu-cases.ts";

function modelCase(name: string, build: (f: Fusion) => readonly (TensorView | null)[]): GpuCase {
  return {
    name,
    build: () => {
      const f = new Fusion();
      for (const output of build(f)) if (output !== null) f.output(output);
      return f;
    },
  };
}

const floats: readonly DType[] = ["double", "float", "half", "bfloat16"];

export const modelCases: readonly GpuCase[] = [
  modelCase("constants and counters", (f) => {
    const x = f.input([33, 40], "int64");
    const count = iota(f, 40, { start: -7, step: 3 });
    return [add(x, unsqueeze(count, 0)), full(f, [5, 7], 0.5, "half"), zeros(f, [9], "int"), iota(f, 1000)];
  }),
  modelCase("random numbers", (f) => {
    const seed = f.input([], "int64");
    return [randomBits(seed, [33, 41]), uniform(seed, [7, 1001]), dropout(f.input([64, 129], "bfloat16"), 0.25, seed)];
  }),
  ...floats.map((dtype) =>
    modelCase(`norms, softmax and rope of ${dtype}`, (f) => {
      const x = f.input([16, 130], dtype);
      const [weight, bias] = [f.input([130], dtype), f.input([130], dtype)];
      const angles = [f.input([16, 65], dtype), f.input([16, 65], dtype)] as const;
      const moments = varMean(x, [1]);
      return [layerNorm(x, weight, bias), rmsNorm(x, weight), softmax(x, 1), rope(x, ...angles), moments.mean];
    }),
  ),
  ...[1, 4096, 12_288, 40_000].map((columns) =>
    modelCase(`norms of rows of ${columns} bfloat16`, (f) => {
      const x = f.input([5, columns], "bfloat16");
      return [layerNorm(x), rmsNorm(x, f.input([columns], "bfloat16")), softmax(x, 1)];
    }),
  ),
  modelCase("an MLP with a norm, forward and backward, in float", (f) => {
    const x = f.input([24, 32], "float");
    const [w1, w2] = [f.input([64, 32], "float"), f.input([32, 64], "float")];
    const [weight, bias] = [f.input([32], "float"), f.input([32], "float")];
    const y = add(x, linear(gelu(linear(layerNorm(x, weight, bias), w1)), w2));
    return [y, ...gradients(f, { of: [y], cotangents: [f.input([24, 32], "float")], wrt: [x, w1, w2, weight, bias] })];
  }),
  modelCase("a gated MLP, forward and backward, in bfloat16", (f) => {
    const x = f.input([24, 32], "bfloat16");
    const [gate, up, down] = [
      [64, 32],
      [64, 32],
      [32, 64],
    ].map((shape) => f.input(shape, "bfloat16"));
    if (gate === undefined || up === undefined || down === undefined) return [];
    const y = linear(mul(silu(linear(x, gate)), linear(x, up)), down);
    return [y, ...gradients(f, { of: [y], cotangents: [f.input([24, 32], "bfloat16")], wrt: [x, gate, up, down] })];
  }),
  modelCase("gradients of an embedding and of a softmax", (f) => {
    const [table, index] = [f.input([50, 24], "float"), f.input([4, 9], "int64")];
    const loss = sum(mul(softmax(embedding(table, index), 2), cast(f.input([4, 9, 24], "float"), "float")), [0, 1, 2]);
    return [loss, ...gradients(f, { of: [loss], wrt: [table] })];
  }),
];
