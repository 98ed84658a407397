/** Random graphs, printed as StableHLO and read back: the same values, and the same shardings of inputs. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type FusionData, importModel } from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { printTensor } from "../../src/ir/print-tensor.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { buildGraph, graphRecipes } from "../properties/annotated-graphs.ts";
import { printStablehlo } from "./print-stablehlo.ts";
import { requireEqual } from "./run-text.ts";

/** Without the numbers of tensors and axes, which another order of creation changes. */
function inputTexts({ tensors, inputs }: FusionData): readonly string[] {
  return inputs.map((id) => printTensor(at(tensors, id)).replaceAll(/T\d+|(?<=[iSxyrb])\d+(?=\{)/gu, ""));
}

it("reads what a printer of random graphs makes of them", async () => {
  let [read, compared] = [0, 0];
  await fc.assert(
    fc.asyncProperty(graphRecipes, async (recipe) => {
      const { fusion } = buildGraph({ ...recipe, symbolic: false, stream: null });
      const data = fusion.data();
      const model = await importModel(printStablehlo(data));
      const own = model.fusion.data();
      // Mesh axes of one device are left out.
      if (data.tensors.every(({ mesh }) => mesh?.shape.includes(1) !== true)) {
        assert.deepEqual(inputTexts(own), inputTexts(data));
        compared++;
      }
      const shapes = data.inputs.map((id) => {
        const tensor = at(data.tensors, id);
        return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
      });
      const inputs = randomInputs(shapes, createRandom(1), "uniform");
      const [found, expected] = [own, data].map((each) => evaluateFusion(each, inputs, new Map()).outputs);
      requireEqual(found ?? [], expected ?? []);
      read++;
    }),
    { numRuns: 30, seed: 45 },
  );
  expect([read, compared > 15]).toEqual([30, true]);
});
