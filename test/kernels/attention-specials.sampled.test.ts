/**
 * Attention of special values. The fused kernels and the ops that they stand for give the same results: those of the
 * oracle, which has a bound for almost all of them.
 */
import { type CausalMask, type DType, Fusion, gradients, MultiDeviceExecutor, sdpa } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { expect, it } from "vitest";
import { type Tensor, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { combinations } from "../support/split-cases.ts";
import { runs, sample } from "../support/suite.ts";

const [rows, keys, d, e] = [6, 7, 3, 2];
const heads = 2;

const largest = { float: (2 - 2 ** -23) * 2 ** 127, double: Number.MAX_VALUE, half: 65504, bfloat16: 2 ** 127 };
const smallest = { float: 2 ** -149, double: 2 ** -1074, half: 2 ** -24, bfloat16: 2 ** -133 };
type Float = keyof typeof largest;

/** Sets elements of g, q, k and v, after uniform numbers or those of `--check`. */
type Spoil = (tensors: readonly Tensor[], dtype: Float, random: Random) => void;

/** With the largest part of the results that may have no bound. */
const spoilers: Readonly<Record<string, readonly [number, Spoil]>> = {
  "special inputs of --check": [0.85, () => {}],
  "NaN in one element": [
    0.3,
    (tensors, _, random) => {
      set(at(tensors, random.integer(4)), random, NaN);
    },
  ],
  "an infinity in one element": [
    0.3,
    (tensors, _, random) => {
      set(at(tensors, random.integer(4)), random, random.integer(2) === 0 ? Infinity : -Infinity);
    },
  ],
  "infinities everywhere": [
    0.75,
    (tensors, _, random) => {
      for (const tensor of tensors) for (const value of [Infinity, -Infinity]) set(tensor, random, value);
    },
  ],
  "scores of -Infinity": [
    0.35,
    (tensors, _, random) => {
      const [q, k] = [at(tensors, 1), at(tensors, 2)].map(({ dtype, data }) => elementsOf(dtype, data));
      for (let i = 0; i < heads * rows; i++) q?.set(i * d, 1);
      for (let i = 0; i < heads * keys; i++) if (i < keys || random.integer(2) === 0) k?.set(i * d, -Infinity);
    },
  ],
  "large numbers": [
    0.9,
    (tensors, dtype, random) => {
      for (const tensor of tensors) {
        for (let i = random.integer(8); i > 0; i--) set(tensor, random, largest[dtype] * (1 - random.integer(3)));
      }
    },
  ],
  "numbers whose products overflow": [
    0.9,
    (tensors, dtype, random) => {
      const root = Math.sqrt(largest[dtype]);
      for (const tensor of tensors) {
        for (let i = random.integer(8); i > 0; i--) set(tensor, random, root * (1 - 2 * random.integer(2)));
      }
    },
  ],
  "small numbers": [
    0,
    (tensors, dtype, random) => {
      for (const tensor of tensors) {
        for (let i = 0; i < 12; i++) set(tensor, random, smallest[dtype] * (random.integer(5) - 2));
      }
    },
  ],
};

function set({ dtype, data }: Tensor, random: Random, value: number): void {
  const elements = elementsOf(dtype, data);
  elements.set(random.integer(elements.length), value);
}

function program(dtype: DType, causal: CausalMask | null): Fusion {
  const f = new Fusion();
  const g = f.input([heads, rows, e], dtype);
  const [q, k, v] = [
    f.input([heads, rows, d], dtype),
    f.input([heads, keys, d], dtype),
    f.input([heads, keys, e], dtype),
  ];
  const { output, logsumexp } = sdpa(q, k, v, { causal });
  f.output(output);
  f.output(logsumexp);
  for (const each of gradients(f, { of: [output], cotangents: [g], wrt: [q, k, v] })) if (each !== null) f.output(each);
  return f;
}

const cases = combinations({
  dtype: ["float", "double", "half", "bfloat16"] as const,
  causal: [null, "topLeft", "bottomRight"] as const,
});

it.each(sample(cases, 6))("of $dtype, causal: $causal", async ({ dtype, causal }) => {
  const f = program(dtype, causal);
  const data = f.data();
  const shapes = [
    [rows, e],
    [rows, d],
    [keys, d],
    [keys, e],
  ].map((shape) => ({ dtype, shape: [heads, ...shape] }));
  const on = createCpuBackend({ workers: 0 });
  const executors = await Promise.all(
    (["fused", "ops"] as const).map((attention) => MultiDeviceExecutor.create(f, { devices: 1, on, attention })),
  );
  const random = createRandom(3);
  for (const [name, [most, spoil]] of Object.entries(spoilers)) {
    let [unbounded, all] = [0, 0];
    for (let run = runs({ quick: 4, long: 40 }); run > 0; run--) {
      const inputs = randomInputs(shapes, random, name === "special inputs of --check" ? "special" : "uniform");
      spoil(inputs, dtype, random);
      const { outputs, bounds } = evaluateFusion(data, inputs);
      for (const [i, executor] of executors.entries()) {
        const results = await executor.run(inputs);
        for (const [j, expected] of outputs.entries()) {
          const comparison = compare(at(results, j), expected, at(bounds, j));
          const which = `${i === 0 ? "fused" : "ops"}, output ${j}, ${name}, run ${run}`;
          expect(comparison.firstBad, `${which}: ${JSON.stringify(comparison)}`).toBeNull();
          unbounded += comparison.unbounded;
          all += expected.data.length;
        }
      }
    }
    expect(unbounded / all, name).toBeLessThanOrEqual(most);
  }
  await Promise.all(executors.map((executor) => executor.close()));
});
