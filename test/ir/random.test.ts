/** Random numbers: Philox's known answers, the forms, and the calls that are refused. */
import { expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { gradients } from "../../src/ir/api/gradients.ts";
import { dropout, randomBits, uniform } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { philox } from "../../src/oracle/evaluate-op.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

const ones = 0xffff_ffffn;

it("is Philox 4x32-10", () => {
  // The vectors of Random123: all zeros, all ones, and digits of pi.
  expect(philox([0n, 0n], [0n, 0n, 0n, 0n])).toEqual([0x6627e8d5n, 0xe169c58dn, 0xbc57ac4cn, 0x9b00dbd8n]);
  expect(philox([ones, ones], [ones, ones, ones, ones])).toEqual([0x408f276dn, 0x41c83b0en, 0xa20bc7c6n, 0x6d5451fdn]);
  expect(philox([0xa4093822n, 0x299f31d0n], [0x243f6a88n, 0x85a308d3n, 0x13198a2en, 0x03707344n])).toEqual([
    0xd16cfe09n,
    0x94fdccebn,
    0x5001e420n,
    0x24126ea1n,
  ]);
});

function valuesOf(seed: bigint, build: (seed: TensorView, f: Fusion) => TensorView): unknown {
  const f = new Fusion();
  f.output(build(f.input([], "int64"), f));
  const [value] = evaluateFusion(f.data(), [Tensor.from(seed, "int64")]).outputs;
  if (value === undefined) throw new Error("an output");
  return Tensor.toArray(value);
}

it("numbers elements in row-major order, four to a block", () => {
  const block = [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8].map((word) => word | 0);
  const flat = valuesOf(0n, (seed) => randomBits(seed, [6]));
  expect(flat).toEqual([...block, expect.any(Number), expect.any(Number)]);
  expect(valuesOf(0n, (seed) => randomBits(seed, [2, 3]))).toEqual([
    (flat as number[]).slice(0, 3),
    (flat as number[]).slice(3),
  ]);
  expect(valuesOf(0n, (seed) => randomBits(seed, []))).toBe(block[0]);
});

it("has 24 bits in a uniform number", () => {
  const [first] = valuesOf(0n, (seed) => uniform(seed, [4])) as number[];
  expect(first).toBe(0x6627e8 * 2 ** -24);
});

it("tells ops of one seed apart, by an offset that their order gives", () => {
  const f = new Fusion();
  const seed = f.input([], "int64");
  uniform(seed, [4]);
  randomBits(seed, [4], { offset: 7 });
  dropout(f.input([4]), 0.5, seed);
  const offsets = f.data().ops.flatMap((op) => (op.kind === "RandomBits" ? [op.offset] : []));
  expect(offsets).toEqual([0, 7, 2]);
});

it("drops elements of probability p, and divides the others", () => {
  const dropped = (p: number): number[] => {
    const f = new Fusion();
    f.output(dropout(f.input([1000]), p, f.input([], "int64")));
    const x = Tensor.from(Array.from({ length: 1000 }, () => 3));
    const [value] = evaluateFusion(f.data(), [x, Tensor.from(5n, "int64")]).outputs;
    return value === undefined ? [] : (Tensor.toArray(value) as number[]);
  };
  expect(new Set(dropped(0))).toEqual(new Set([3]));
  expect(new Set(dropped(1))).toEqual(new Set([0]));
  const quarter = dropped(0.25);
  expect(new Set(quarter)).toEqual(new Set([0, 4]));
  const zeros = quarter.filter((x) => x === 0).length;
  // 250 with a standard deviation of 14.
  expect(Math.abs(zeros - 250)).toBeLessThan(70);
});

it.each([0, 0.4, 1])("differentiates a dropout of %d by the same counters, without its mask", (p) => {
  const f = new Fusion();
  const [x, seed, g] = [f.input([5, 9], "double"), f.input([], "int64"), f.input([5, 9], "double")];
  uniform(seed, [3]);
  const y = dropout(x, p, seed);
  const [gx] = gradients(f, { of: [y], cotangents: [g], wrt: [x] });
  if (gx === null || gx === undefined) throw new Error("a gradient");
  const same = dropout(g, p, seed, { offset: 1 });
  for (const output of [gx, same]) f.output(output);
  const { ops, tensors } = f.data();
  // Nothing of the forward pass but the seed is read.
  const backward = ops.slice(ops.findIndex((op) => op.output === y.id) + 1);
  expect(backward.flatMap(({ inputs }) => inputs).filter((id) => id > g.id && id <= y.id)).toEqual([]);
  const inputs = [x, seed, g].map(({ id }) => {
    const { dtype = "double", domain } = tensors[id] ?? {};
    return { dtype, shape: domain?.logical.length === 2 ? [5, 9] : [] };
  });
  const [found, expected] = evaluateFusion(f.data(), randomInputs(inputs, createRandom(4), "uniform")).outputs;
  expect(found).toEqual(expected);
});

it("refuses other seeds, probabilities and offsets", () => {
  const f = new Fusion();
  const seed = f.input([], "int64");
  expect(diagnosticOf(() => uniform(f.input([], "int"), [2]))).toMatchObject({ code: "dtype-mismatch" });
  expect(diagnosticOf(() => uniform(f.input([1], "int64"), [2]))).toMatchObject({ code: "shape-mismatch" });
  expect(diagnosticOf(() => uniform(seed, [-2]))).toMatchObject({ code: "bad-extent" });
  expect(diagnosticOf(() => uniform(seed, [2], { offset: 0.5 }))).toMatchObject({ code: "bad-argument" });
  expect(diagnosticOf(() => dropout(f.input([2]), 1.5, seed))).toMatchObject({ code: "bad-argument", found: "1.5" });
  expect(f.data().ops).toEqual([]);
});
