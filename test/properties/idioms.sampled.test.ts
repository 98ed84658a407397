/**
 * The idiom of a communication changes no bit: random fusions on random meshes, their collectives run by a library or
 * as signals, copies from peers and combinations, in any schedule and in repeated runs.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DiagnosticError, type Fusion, MultiDeviceExecutor, type Tensor } from "@braid-compiler/braid";
import { createCpuBackend, type CpuOptions } from "@braid-compiler/braid/cpu";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { buildFusion, recipes } from "../support/random-fusion.ts";
import { draws, runs } from "../support/suite.ts";

/** The shards of the second of two runs; null if lowering rejects the Fusion. */
async function run(
  fusion: Fusion,
  options: { readonly devices: number; readonly streams: number; readonly backend: "nccl" | "cuda" },
  cpu: CpuOptions,
): Promise<readonly (readonly (Tensor | null)[])[] | null> {
  const { inputs, tensors } = fusion.data();
  const shapes = inputs.map((id) => {
    const tensor = tensors[id];
    if (tensor === undefined) throw new Error("an input without a tensor");
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
  });
  const values = randomInputs(shapes, createRandom(3), "uniform");
  try {
    const executor = await MultiDeviceExecutor.create(fusion, { ...options, on: createCpuBackend(cpu) });
    await executor.run(values, { gather: false });
    const outputs = await executor.run(values, { gather: false });
    await executor.close();
    return outputs as (readonly (Tensor | null)[])[];
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

const counts = { quick: 6, long: 60 };

it("library and peer memory give the same bits", async () => {
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(recipes, fc.integer({ min: 1, max: 8 }), fc.nat(), async (recipe, streams, seed) => {
      const fusion = buildFusion(recipe);
      const { devices } = recipe;
      const expected = await run(fusion, { devices, streams, backend: "nccl" }, {});
      const cuda = { devices, streams, backend: "cuda" } as const;
      const ways: readonly CpuOptions[] = [{ queues: "ranks" }, { interleaving: { kind: "seed", seed } }];
      for (const way of ways) expect(await run(fusion, cuda, way)).toEqual(expected);
      if (expected !== null) ran++;
    }),
    draws(counts),
  );
  expect(ran).toBeGreaterThan(runs(counts) / 3);
}, 120_000);
