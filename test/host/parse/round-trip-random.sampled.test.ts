/** `parse` is the inverse of `print` for lowered random fusions, by all options that change what is printed. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DiagnosticError, type Fusion, type HostProgram, lower, type LowerOptions } from "@braid-compiler/braid";
import { buildFusion, recipes } from "../../support/random-fusion.ts";
import { expectRoundTrip } from "../../support/round-trip.ts";
import { draws, runs } from "../../support/suite.ts";

function lowered(fusion: Fusion, options: LowerOptions): HostProgram | null {
  try {
    return lower(fusion, options);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

it("random fusions", () => {
  const counts = { quick: 20, long: 400 };
  let read = 0;
  const options = fc.record({
    backend: fc.constantFrom("nccl", "cuda"),
    deallocate: fc.boolean(),
    shrink: fc.boolean(),
  });
  fc.assert(
    fc.property(recipes, options, fc.nat({ max: 5 }), (recipe, chosen, streams) => {
      const fusion = buildFusion(recipe);
      for (let rank = 0; rank < recipe.devices; rank++) {
        const program = lowered(fusion, { ...chosen, rank });
        if (program === null) return;
        expectRoundTrip(program, [{ rank, streams: streams + 1 }]);
        read++;
      }
    }),
    draws(counts),
  );
  expect(read).toBeGreaterThan(runs(counts));
}, 120_000);
