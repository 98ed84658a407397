/** A unit's kernel against its steps evaluated one by one, bit for bit. */
import { expect } from "vitest";
import type { UnitKernel } from "../../src/commands/kernel.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { asStored, offsetsOf, runKernel } from "./run-kernel.ts";
import { evaluateUnit } from "./unit-reference.ts";
import { firstDifference, randomValues } from "./values.ts";

export function checkUnit(unit: UnitKernel, seed: number): void {
  const random = createRandom(seed);
  const inputs = unit.inputs.map((input) =>
    asStored(input, randomValues(input.dtype, offsetsOf(input).length, random)),
  );
  const found = runKernel(unit, inputs);
  const expected = evaluateUnit(unit, inputs);
  for (const [i, values] of expected.entries()) {
    const difference = firstDifference(at(found, i), values);
    if (difference !== null) expect.fail(`result ${i} of ${JSON.stringify(unit)}: ${difference}`);
  }
}
