/** Runs sharded models on the machine, on random inputs. */
import { type ExecutorOptions, type Fusion, MultiDeviceExecutor, type Tensor } from "@braid-compiler/braid";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { type ModelSizes, shardedModels } from "./sharded-models.ts";

export type ModelName = keyof typeof shardedModels;

export function builtModel(name: ModelName, sizes: ModelSizes): { readonly fusion: Fusion; readonly devices: number } {
  const { build, groups } = shardedModels[name];
  return { fusion: build(sizes), devices: groups * sizes.devices };
}

export function inputsOf(fusion: Fusion, seed: number): readonly Tensor[] {
  const { inputs, tensors } = fusion.data();
  const shapes = inputs.map((id) => ({ dtype: at(tensors, id).dtype, shape: shapeOf(at(tensors, id), new Map()) }));
  return randomInputs(shapes, createRandom(seed), "uniform");
}

/** Of a second run, which finds slots and temporaries as the first has left them. */
export async function outputsOf(
  fusion: Fusion,
  options: Omit<ExecutorOptions, "localRanks">,
  inputs: readonly Tensor[],
): Promise<readonly Tensor[]> {
  const executor = await MultiDeviceExecutor.create(fusion, options);
  try {
    await executor.run(inputs);
    return await executor.run(inputs);
  } finally {
    await executor.close();
  }
}
