/** Random units against their steps evaluated one by one, bit for bit. */
import fc from "fast-check";
import { it } from "vitest";
import { runs } from "../support/suite.ts";
import { checkUnit } from "./check-unit.ts";
import { makeUnit } from "./random-unit.ts";
import { unitChoices } from "./unit-arbitrary.ts";

it("a unit is its steps, one by one", () => {
  fc.assert(
    fc.property(unitChoices, fc.nat(1000), (choice, seed) => checkUnit(makeUnit(choice), seed)),
    { numRuns: runs({ quick: 150, long: 1500 }), seed: 1 },
  );
});
