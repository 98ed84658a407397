/**
 * Random loops over the devices: any mesh, any position of the axes, every schedule, with pointwise ops and a matmul
 * around. The result is the oracle's, and get and put, and all numbers of streams, give the same bits.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { MultiDeviceExecutor, type Tensor } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { type ScheduleOptions, schedules } from "../support/point-to-point-schedules.ts";
import { buildPointToPoint, type PointToPointRecipe, pointToPointRecipes } from "../support/random-point-to-point.ts";
import { draws } from "../support/suite.ts";

function settingOf(
  recipe: PointToPointRecipe,
  schedule = schedules[recipe.schedule],
): ScheduleOptions & { readonly devices: number; readonly streams: number } {
  return {
    devices: 6,
    streams: recipe.streams,
    interStreamSync: recipe.chained,
    insertReshardingAfter: recipe.after,
    ...schedule,
  };
}

it("gives the oracle's result", async () => {
  await fc.assert(
    fc.asyncProperty(pointToPointRecipes, fc.nat(), async (recipe, seed) => {
      await expectOracle(buildPointToPoint(recipe), { ...settingOf(recipe), seed });
    }),
    draws({ quick: 10, long: 50 }),
  );
});

it("gives one set of bits by get, put, sends and receives, and broadcasts, in any schedule", async () => {
  await fc.assert(
    fc.asyncProperty(pointToPointRecipes, fc.nat(), async (recipe, seed) => {
      const data = buildPointToPoint(recipe).data();
      const shapes = data.inputs.map((id) => {
        const tensor = at(data.tensors, id);
        return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
      });
      const inputs = randomInputs(shapes, createRandom(seed), "uniform");
      const results: (readonly Tensor[])[] = [];
      for (const [i, schedule] of Object.values(schedules).entries()) {
        const setting = { ...settingOf(recipe, schedule), streams: 1 + (i % 4) };
        // One queue per rank: hardware may have no more.
        for (const queues of ["streams", "ranks"] as const) {
          const on = createCpuBackend({ interleaving: { kind: "seed", seed: seed + i }, queues });
          const executor = await MultiDeviceExecutor.create(buildPointToPoint(recipe), { ...setting, on });
          results.push(await executor.run(inputs));
          await executor.close();
        }
      }
      for (const result of results) expect(result).toEqual(results[0]);
    }),
    draws({ quick: 4, long: 25 }),
  );
});
