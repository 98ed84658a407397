/**
 * Random reshardings between random meshes give the oracle's result, and are refused only where Stream asks for what
 * the pages of the passes list.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DiagnosticError, lower } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { buildResharding, reshardingDevices, reshardingRecipes } from "../support/random-resharding.ts";
import { draws, runs } from "../support/suite.ts";

const counts = { quick: 15, long: 300 };

it("gives the oracle's result on every pair of meshes", { timeout: 240_000 }, async () => {
  const refused = new Map<string, number>();
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(reshardingRecipes, fc.boolean(), async (recipe, insertReshardingAfter) => {
      const fusion = buildResharding(recipe);
      try {
        lower(fusion, { insertReshardingAfter });
      } catch (error) {
        if (!(error instanceof DiagnosticError)) throw error;
        const [first] = error.diagnostics;
        expect(first?.code, error.message).toMatch(/^(stream-|point-to-point-)/u);
        refused.set(first?.code ?? "", (refused.get(first?.code ?? "") ?? 0) + 1);
        return;
      }
      ran++;
      await expectOracle(fusion, { devices: reshardingDevices, insertReshardingAfter });
    }),
    draws(counts),
  );
  expect(ran, JSON.stringify([...refused])).toBeGreaterThan(0.8 * runs(counts));
});
