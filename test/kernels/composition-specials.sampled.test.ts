/** Compositions that run as one kernel, and their gradients in closed form, of special values: the oracle's results. */
import {
  crossEntropy,
  exp,
  Fusion,
  gelu,
  gradients,
  layerNorm,
  logSoftmax,
  logsumexp,
  MultiDeviceExecutor,
  rmsNorm,
  softmax,
  swiglu,
  type TensorView,
  varMean,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { expect, it } from "vitest";
import { elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { combinations } from "../support/split-cases.ts";
import { runs, sample } from "../support/suite.ts";

const [rows, columns] = [12, 8];

/** Of x [rows, columns], w and b [columns], and indices of columns [rows]. */
type Composition = (x: TensorView, w: TensorView, b: TensorView, index: TensorView) => TensorView;

const compositions: Readonly<Record<string, Composition>> = {
  softmax: (x) => softmax(x, 1),
  logSoftmax: (x) => logSoftmax(x, 1),
  logsumexp: (x) => logsumexp(x, [1]),
  layerNorm: (x, w, b) => layerNorm(x, w, b),
  rmsNorm: (x, w) => rmsNorm(x, w),
  swiglu: (x) => swiglu(x, exp(x)),
  gelu: (x) => gelu(x),
  variance: (x) => varMean(x, [1]).variance,
  crossEntropy: (x, _w, _b, index) => crossEntropy(x, index),
};

const cases = combinations({
  name: Object.keys(compositions),
  dtype: ["float", "double", "half", "bfloat16"] as const,
});

it.each(sample(cases, 7))("$name of $dtype", async ({ name, dtype }) => {
  const f = new Fusion();
  const [x, w, b] = [f.input([rows, columns], dtype), f.input([columns], dtype), f.input([columns], dtype)];
  const index = f.input([rows], "int64");
  const y = compositions[name]?.(x, w, b, index) ?? x;
  f.output(y);
  const g = f.input([rows, columns].slice(0, y.rank), dtype);
  for (const each of gradients(f, { of: [y], cotangents: [g], wrt: [x, w, b] })) if (each !== null) f.output(each);
  const shapes = [
    { dtype, shape: [rows, columns] },
    { dtype, shape: [columns] },
    { dtype, shape: [columns] },
    { dtype: "int64" as const, shape: [rows], limit: columns },
    { dtype, shape: [rows, columns].slice(0, y.rank) },
  ];
  const executor = await MultiDeviceExecutor.create(f, { devices: 1, on: createCpuBackend({ workers: 0 }) });
  const random = createRandom(5);
  let [unbounded, all] = [0, 0];
  for (let run = runs({ quick: 3, long: 20 }); run > 0; run--) {
    const inputs = randomInputs(shapes, random, "special");
    // The indices are valid, and two rows have one value only.
    const [first] = inputs;
    inputs[3] = at(randomInputs([at(shapes, 3)], random, "uniform"), 0);
    const elements = first === undefined ? null : elementsOf(first.dtype, first.data);
    for (let i = 0; i < 2 * columns; i++) elements?.set(i, i < columns ? -Infinity : 3);
    const { outputs, bounds } = evaluateFusion(f.data(), inputs);
    const results = await executor.run(inputs);
    for (const [i, expected] of outputs.entries()) {
      const comparison = compare(at(results, i), expected, at(bounds, i));
      expect(comparison.firstBad, `output ${i}, run ${run}: ${JSON.stringify(comparison)}`).toBeNull();
      unbounded += comparison.unbounded;
      all += expected.data.length;
    }
  }
  expect(unbounded / all).toBeLessThan(0.5);
  await executor.close();
});
