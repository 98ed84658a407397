/**
 * Runs a Fusion of 16-bit floats, and accepts an output as a whole if it is at most twice as far from the exact result
 * as the oracle's, which has one rounding per op. Where the bounds of elements say enough, they hold.
 */
import { type Fusion, MultiDeviceExecutor } from "@braid-compiler/braid";
import { expect } from "vitest";
import { checkOutputs } from "../../src/cli/run/outputs.ts";
import { placedData } from "../../src/compile/lower.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { type Tensor, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { cpuBackends } from "../support/cpu-backends.ts";

export async function expectNorms(fusion: Fusion, devices: number): Promise<void> {
  // Bounds depend on where tensors lie: devices' parts of a sum round.
  const data = placedData(fusion, {});
  const tensors = data.inputs.map((id) => at(data.tensors, id));
  const shapes = tensors.map((tensor) => ({ dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) }));
  const inputs = randomInputs(shapes, createRandom(1), "uniform");
  inputs.forEach((input, i) => {
    if (tensors[i]?.origin?.name?.startsWith("w") === true) scale(input, input.shape.at(-1) ?? 1);
  });
  const executor = await MultiDeviceExecutor.create(fusion, { devices, on: at(cpuBackends, 0) });
  try {
    const outputs = await executor.run(inputs);
    const copies = outputs.map((tensor) => [{ tensor, ranks: [0] }]);
    for (const { check, failure } of checkOutputs(data, inputs, new Map(), copies, "braid")) {
      expect(failure).toBeNull();
      // Of what --check accepts, which is 4 times.
      if (check.norm !== undefined) expect(check.norm.error).toBeLessThanOrEqual(check.norm.limit / 2);
    }
  } finally {
    await executor.close();
  }
}

/** Divides by the root of the number of terms, so that activations keep their size. */
function scale({ dtype, data }: Tensor, terms: number): void {
  const elements = elementsOf(dtype, data);
  for (let i = 0; i < elements.length; i++) elements.set(i, Number(elements.get(i)) / Math.sqrt(terms));
}
