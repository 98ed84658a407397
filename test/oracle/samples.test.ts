/** Samples of large outputs: which rows, what they depend on, and that they have the whole's bits. */
import * as braid from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { planSamples } from "../../src/oracle/evaluate.ts";
import { sampledRows, sampleRows } from "../../src/oracle/sample/rows.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { loadExample } from "../support/example-program.ts";
import { expectSample } from "./expect-sample.ts";

function inputsOf({ inputs, tensors }: FusionData): readonly braid.Tensor[] {
  const shapes = inputs
    .map((id) => at(tensors, id))
    .map((tensor) => ({ dtype: tensor.dtype, shape: shapeOf(tensor, new Map()), limit: 3 }))
    .map(({ limit, ...shape }) => (shape.dtype === "int64" ? { ...shape, limit } : shape));
  return randomInputs(shapes, createRandom(1), "uniform");
}

type Build = (x: braid.TensorView, f: braid.Fusion) => braid.TensorView;

const builds: Readonly<Record<string, Build>> = {
  cat: (x) => braid.cat([x, braid.neg(x), x], 1),
  "cat of slices": (x) => braid.cat(braid.chunk(x, 2, 1).toReversed(), 1),
  pad: (x) => braid.pad(x, [[1, 2], [-1, 3], [0, -2]], 7), // prettier-ignore
  "strided slice": (x) => braid.slice(x, [1, 0, 2], [5, 6, 8], [2, 3, 2]),
  expand: (x) => braid.expand(braid.unsqueeze(braid.sum(x, [1]), 1), [5, 6, 8]),
  where: (x) => braid.where(braid.gt(x, 0), x, braid.broadcast(braid.amax(x, [0]), [true, false, false])),
  reshapes: (x) => braid.reshape(braid.permute(braid.reshape(x, [5, 2, 3, 4, 2]), [3, 0, 2, 1, 4]), [20, 3, 4]),
  "reshape across axes": (x) => braid.reshape(x, [3, 2, 40]),
  "reshape with axes of extent 1": (x) => braid.reshape(x, [1, 30, 1, 8, 1]),
  "random numbers": (x, f) => braid.dropout(x, 0.5, f.input([], "int64")),
  iota: (x, f) => braid.add(x, braid.broadcast(braid.cast(braid.iota(f, 8), "float"), [true, true, false])),
  embedding: (x, f) => braid.embedding(braid.reshape(x, [30, 8]), f.input([4], "int64")),
  gather: (x, f) => braid.gather(x, 1, f.input([5, 2, 8], "int64")),
  scatterAdd: (x, f) => braid.scatterAdd(x, 1, f.input([5, 2, 8], "int64"), f.input([5, 2, 8], "float")),
  "a batched matmul": (x) => braid.matmul(x, braid.permute(braid.slice(x, [2, 0, 0], [3, 6, 8]), [0, 2, 1])),
  "a linear with bias": (x, f) => braid.linear(x, f.input([4, 8], "float"), f.input([4], "float")),
  "a row's product": (x, f) => braid.matmul(x, f.input([8], "float")),
  attention: (x) => braid.sdpa(x, braid.neg(x), x, { causal: "topLeft" }).output,
  "attention of groups": (x) => {
    const k = braid.unsqueeze(x, 1);
    return braid.sdpa(braid.cat([k, braid.neg(k)], 1), k, k, { causal: "bottomRight" }).output;
  },
  "attention to more keys": (x) => {
    const [q] = braid.split(x, [2, 4], 1);
    if (q === undefined) throw new Error("two parts");
    return braid.sdpa(q, x, x, { causal: "bottomRight" }).output;
  },
  "one use of all, one of a part": (x) =>
    braid.mul(braid.softmax(x, 1), braid.broadcast(braid.sum(x, [0, 1, 2]), [true, true, true])),
};

describe("a sample has the bits and bounds of the whole", () => {
  it.each(Object.entries(builds))("%s", (_, build) => {
    const f = new braid.Fusion();
    f.output(build(f.input([5, 6, 8], "float"), f));
    for (let seed = 0; seed < 3; seed++) expectSample(f.data(), inputsOf(f.data()), createRandom(seed));
  });

  it.each([
    ["gpt-block", { FFN: 8 }],
    ["llama-block", { GROUPS: 2, FFN: 8 }],
  ])("%s with its gradients", async (name, own) => {
    const program = await loadExample(`transformer/${name}.ts`);
    const built = program.build({ devices: 2, params: { S: 1, B: 1, L: 4, H: 16, HEADS: 4, ...own } });
    if (!("data" in built)) throw new Error("not a Fusion");
    expectSample(built.data(), inputsOf(built.data()), createRandom(2));
  });
});

describe("rows of large outputs", () => {
  it("are all rows up to 262,144 elements", () => {
    for (const shape of [[512, 512], [262_144], [], [0, 1_000_000]]) {
      expect(sampledRows(sampleRows(shape, createRandom(1)), shape)).toBeNull();
    }
  });

  it.each([
    [[2048, 2048], 64, 2048],
    [[8, 2048, 1024], 128, 16_384],
    [[2, 3, 1000, 4096], 60, 6000],
    [[1_000_000], 131_072, 1_000_000],
    [[4, 1_000_000], 4, 4],
  ] as const)("of %j are %d of %d", (shape, compared, of) => {
    const sample = sampleRows(shape, createRandom(5));
    expect(sampledRows(sample, shape) ?? { compared: of, of }).toEqual({ compared, of });
    expect(sampleRows(shape, createRandom(5))).toEqual(sample);
  });

  it("lie in every 64th of the rows, so that every device and chunk has some", () => {
    const [rows] = sampleRows([2048, 2048], createRandom(3));
    expect(rows?.map((row) => Math.floor(row / 32))).toEqual(Array.from({ length: 64 }, (_, i) => i));
  });

  it("need only their queries of attention, and all keys and values", () => {
    const f = new braid.Fusion();
    const [q, k, v] = [f.input([2, 4096, 64]), f.input([2, 512, 64]), f.input([2, 512, 64])];
    f.output(braid.sdpa(q, k, v).output);
    const rows = [1, 300, 4000];
    const { samples } = planSamples(f.data(), new Map(), [[null, rows, null]]);
    const [ofQ, ...others] = f.data().inputs.map((id) => samples.get(id));
    expect(ofQ).toEqual([null, rows, null]);
    for (const other of others) expect(other).toEqual([null, null, null]);
  });

  it("need only their rows of a first operand, and their columns of another", () => {
    const f = new braid.Fusion();
    const [a, b] = [f.input([512, 1024], "float"), f.input([1024, 1024], "float")];
    f.output(braid.matmul(braid.relu(a), b));
    f.output(braid.matmul(braid.permute(b, [1, 0]), braid.permute(b, [1, 0])));
    const { tensors, inputs, outputs } = f.data();
    const [first, second] = outputs.map((id) => sampleRows(shapeOf(at(tensors, id), new Map()), createRandom(1)));
    const { samples, ops } = planSamples(f.data(), new Map(), [at([first ?? []], 0), [[], []]]);
    expect(samples.get(at(inputs, 0))).toEqual([first?.[0], null]);
    expect(samples.get(at(inputs, 1))).toEqual([null, null]);
    expect(ops.size).toBe(5);
    expect(second?.[0]).toHaveLength(128);
  });
});
