/** Runs a model's text on the devices of its meshes, beside another text that says the same without them. */
import { expect } from "vitest";
import { type ImportedModel, importModel, MultiDeviceExecutor, print, type Tensor } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { compareExpected } from "../../src/cli/run/expected.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

/** Of all inputs, with the constants of the file. Integers lie below `limit`. */
function inputsOf(model: ImportedModel, seed: number, limit = 4): readonly Tensor[] {
  const data = model.fusion.data();
  const shapes = data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()), limit };
  });
  return randomInputs(shapes, createRandom(seed), "uniform").map((tensor, i) => model.inputs[i]?.value ?? tensor);
}

/** The outputs of the whole program, by the oracle. */
async function evaluated(text: string, seed: number): Promise<readonly Tensor[]> {
  const model = await importModel(text);
  return evaluateFusion(model.fusion.data(), inputsOf(model, seed), new Map()).outputs;
}

/** What moves on rank 0. `plain`: what the outputs must be. */
export async function runText(text: string, plain: string, seed = 1): Promise<string> {
  const model = await importModel(text);
  const expected = await evaluated(plain, seed);
  const on = createCpuBackend({ interleaving: { kind: "seed", seed } });
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices: model.devices ?? 1, on });
  try {
    const outputs = await executor.run(inputsOf(model, seed));
    requireEqual(outputs, expected);
    const host = print(executor.hostProgram(0));
    return Array.from(
      host.matchAll(/\(type=(\w+)|(CollectivePermute|AllToAllV)/gu),
      ([, type, other]) => type ?? other,
    ).join(" ");
  } finally {
    await executor.close();
  }
}

/** Within the round-offs of their dtypes. */
export function requireEqual(outputs: readonly Tensor[], expected: readonly Tensor[]): void {
  expect(outputs.map(({ dtype, shape }) => [dtype, shape])).toEqual(expected.map(({ dtype, shape }) => [dtype, shape]));
  const named = expected.map((tensor, i) => ({ name: `out${i}`, tensor }));
  const compared = compareExpected(
    named,
    outputs.map((tensor) => [{ tensor, ranks: [0] }]),
  );
  expect(compared.map(({ failure }) => failure)).toEqual(expected.map(() => null));
}
