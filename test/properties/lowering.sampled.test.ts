/** Random fusions lower on every rank or are refused with a diagnostic; dumps of the same Fusion are the same text. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DiagnosticError, type Fusion, lower, print } from "@braid-compiler/braid";
import { buildFusion, type Recipe, recipes } from "../support/random-fusion.ts";
import { draws, runs } from "../support/suite.ts";

function dumps(fusion: Fusion, { devices }: Recipe): readonly string[] | string {
  try {
    return Array.from({ length: devices }, (_, rank) => print(lower(fusion, { rank })));
  } catch (error) {
    if (error instanceof DiagnosticError) return error.message;
    throw error;
  }
}

it("lowers or refuses with a diagnostic, always to the same text", () => {
  const programs = { quick: 30, long: 500 };
  const counts = { lowered: 0, refused: new Map<string, number>() };
  fc.assert(
    fc.property(recipes, (recipe) => {
      const first = dumps(buildFusion(recipe), recipe);
      expect(dumps(buildFusion(recipe), recipe)).toEqual(first);
      if (typeof first !== "string") counts.lowered++;
      else {
        const code = /error\[(?<code>[\w-]+)\]/u.exec(first)?.groups?.["code"] ?? first;
        counts.refused.set(code, (counts.refused.get(code) ?? 0) + 1);
      }
    }),
    draws(programs),
  );
  // A generator whose Fusions are mostly rejected would test little.
  expect(counts.lowered, JSON.stringify([...counts.refused])).toBeGreaterThan(0.4 * runs(programs));
});
