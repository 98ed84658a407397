/** A block of linears of 8-bit floats, trained beside PyTorch's. */
import {
  add,
  cast,
  float8Linear,
  Fusion,
  gradients,
  linear,
  mean,
  mul,
  rmsNorm,
  silu,
  sub,
  Tensor,
  type TensorView,
} from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at, keysOf } from "../../../src/support/invariant.ts";
import { runs } from "../../support/suite.ts";
import { numbersOf, wave } from "./waves.ts";

/** The steps whose losses PyTorch gave. Quick takes the first two of 50: a step takes a fifth of a second. */
const reported = [0, 1, 9, 19, 29, 39, 49].slice(0, runs({ quick: 1, long: 0 }) === 1 ? 2 : 7);

/** Steps of x + down silu(up norm(x)) by gradient descent. */
function losses(multiply: (x: TensorView, weight: TensorView) => TensorView): readonly number[] {
  const [m, k, h, rate] = [32, 32, 64, 0.5];
  const f = new Fusion();
  const [x, target] = [f.input([m, k], "bfloat16"), f.input([m, k], "float")];
  const [up, down] = [f.input([h, k], "float"), f.input([k, h], "float")];
  const inner = silu(multiply(rmsNorm(x, null, 1e-6), cast(up, "bfloat16")));
  const distance = sub(cast(add(x, multiply(inner, cast(down, "bfloat16"))), "float"), target);
  const loss = mean(mul(distance, distance), [0, 1]);
  const found = gradients(f, { of: [loss], wrt: [up, down] });
  f.output(loss);
  [up, down].forEach((weight, i) => {
    const gradient = at(found, i);
    if (gradient !== null) f.output(sub(weight, mul(gradient, rate)));
  });
  const given = [Tensor.from(wave(m, k, 1, 1), "bfloat16"), Tensor.from(wave(m, k, 2, 1), "float")];
  let weights: readonly Tensor[] = [
    Tensor.from(wave(h, k, 3, 0.25), "float"),
    Tensor.from(wave(k, h, 4, 0.2), "float"),
  ];
  return Array.from({ length: Math.max(...reported) + 1 }, () => {
    const { outputs } = evaluateFusion(f.data(), [...given, ...weights]);
    weights = outputs.slice(1);
    return at(numbersOf(at(outputs, 0)), 0);
  });
}

/** Of PyTorch 2.13 on a CPU: torch._scaled_mm of operands that are quantized as torchao does, and plain bfloat16. */
const ofPyTorch = {
  bfloat16: [0.87651, 0.80025, 0.50721, 0.37031, 0.29605, 0.24621, 0.20929],
  rowwise: [0.88384, 0.80299, 0.50873, 0.37113, 0.29653, 0.24683, 0.21046],
  tensorwise: [0.88825, 0.79175, 0.50946, 0.37208, 0.29674, 0.24693, 0.2109],
};

it.each(keysOf(ofPyTorch))("trains a block as PyTorch does: %s", (recipe) => {
  const found = losses((x, w) => (recipe === "bfloat16" ? linear(x, w) : float8Linear(x, w, null, recipe)));
  const steps = reported.map((step) => at(found, step));
  steps.forEach((loss, i) => {
    expect(Math.abs(loss / at(ofPyTorch[recipe], i) - 1), `${loss}`).toBeLessThanOrEqual(0.003);
    expect(Math.abs(loss / at(ofPyTorch.bfloat16, i) - 1), `${loss}`).toBeLessThanOrEqual(0.02);
  });
});
