/**
 * Random fusions run on 1 to 8 devices and 1 to 8 streams: the oracle's result or a diagnostic, the same bits under
 * every schedule and in both readings of transfers, and a Program that does not depend on the order in which ranks are
 * linked.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  DiagnosticError,
  type Fusion,
  link,
  lower,
  MultiDeviceExecutor,
  record,
  type Tensor,
} from "@braid-compiler/braid";
import { type CpuOptions, createCpuBackend } from "@braid-compiler/braid/cpu";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { buildFusion, type Recipe, recipes } from "../support/random-fusion.ts";
import { draws, runs } from "../support/suite.ts";

const settings = fc.record({ recipe: recipes, streams: fc.integer({ min: 1, max: 8 }), after: fc.boolean() });

function lowers(fusion: Fusion, { devices }: Recipe, insertReshardingAfter: boolean): boolean {
  try {
    for (let rank = 0; rank < devices; rank++) lower(fusion, { rank, insertReshardingAfter });
    return true;
  } catch (error) {
    if (error instanceof DiagnosticError) return false;
    throw error;
  }
}

async function runOnce(
  fusion: Fusion,
  devices: number,
  streams: number,
  options: CpuOptions,
): Promise<readonly unknown[]> {
  const data = fusion.data();
  const shapes = data.inputs.map((id) => {
    const tensor = data.tensors[id];
    if (tensor === undefined) throw new Error("an input without a tensor");
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
  });
  const inputs: Tensor[] = randomInputs(shapes, createRandom(3), "uniform");
  const executor = await MultiDeviceExecutor.create(fusion, { devices, streams, on: createCpuBackend(options) });
  try {
    return await executor.run(inputs, { gather: false });
  } finally {
    await executor.close();
  }
}

it("gives the oracle's result", async () => {
  const counts = { quick: 10, long: 130 };
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(settings, async ({ recipe, streams, after }) => {
      const fusion = buildFusion(recipe);
      if (!lowers(fusion, recipe, after)) return;
      ran++;
      await expectOracle(fusion, { devices: recipe.devices, streams, insertReshardingAfter: after });
    }),
    draws(counts),
  );
  expect(ran).toBeGreaterThan(0.4 * runs(counts));
});

it("gives the same bits under every schedule", async () => {
  await fc.assert(
    fc.asyncProperty(settings, fc.nat(), async ({ recipe, streams }, seed) => {
      const fusion = buildFusion(recipe);
      if (!lowers(fusion, recipe, false)) return;
      const reference = await runOnce(fusion, recipe.devices, streams, {});
      for (const schedule of [seed, seed + 1, seed + 2]) {
        const options: CpuOptions = { interleaving: { kind: "seed", seed: schedule } };
        expect(await runOnce(fusion, recipe.devices, streams, options)).toEqual(reference);
      }
      expect(await runOnce(fusion, recipe.devices, streams, { transfers: "eager" })).toEqual(reference);
      expect(await runOnce(fusion, recipe.devices, streams, { queues: "ranks" })).toEqual(reference);
    }),
    draws({ quick: 3, long: 30 }),
  );
});

it("links to the same Program in any order of ranks", () => {
  fc.assert(
    fc.property(settings, fc.nat(), ({ recipe, streams }, seed) => {
      const fusion = buildFusion(recipe);
      if (!lowers(fusion, recipe, false)) return;
      const lists = Array.from({ length: recipe.devices }, (_, rank) =>
        record(lower(fusion, { rank }), { rank, sizes: new Map(), streams }),
      );
      const random = createRandom(seed);
      const shuffled = lists.map((list) => ({ list, key: random.float() })).sort((a, b) => a.key - b.key);
      expect(link(shuffled.map(({ list }) => list))).toEqual(link(lists));
    }),
    draws({ quick: 6, long: 50 }),
  );
});
