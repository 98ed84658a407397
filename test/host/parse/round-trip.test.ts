/** `parse` is the inverse of `print`: lowered random fusions, by all options that change what is printed, and the hand-built dumps. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Fusion, type HostProgram, lower, type LowerOptions } from "braid";
import { dumpPrograms } from "../dump-programs.ts";
import { buildFusion, recipes } from "../../support/random-fusion.ts";
import { expectRoundTrip } from "../../support/round-trip.ts";

function lowered(fusion: Fusion, options: LowerOptions): HostProgram | null {
  try {
    return lower(fusion, options);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

it("random fusions", () => {
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
    { numRuns: 400 },
  );
  expect(read).toBeGreaterThan(400);
}, 120_000);

describe("hand-built programs of nvFuser's dumps", () => {
  it.each(dumpPrograms)("$name", ({ build }) => {
    const sizes = [
      { i0: 8, i2: 6, i3: 4, i4: 5, i5: 5, i6: 3 },
      { i0: 8, i2: 8, i3: 1, i4: 1, i5: 1, i6: 7 },
    ];
    const runs = [0, 3, 7].flatMap((rank) => sizes.map((own) => ({ rank, sizes: own, streams: 3 })));
    expectRoundTrip(build(), runs);
  });
});
