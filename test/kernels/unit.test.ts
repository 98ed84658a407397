/** Units against their steps evaluated one by one, bit for bit: random ones, and those that are hard to fuse. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Operand, UnitKernel } from "../../src/commands/kernel.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { makeUnit, type UnitChoice } from "./random-unit.ts";
import { offsetsOf, runKernel, type Values } from "./run-kernel.ts";
import { evaluateUnit } from "./unit-reference.ts";
import { firstDifference, randomValues } from "./values.ts";

function check(unit: UnitKernel, seed: number): void {
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

/** What an operand holds after `values` were written: along a stride of 0 the last one counts. */
function asStored(operand: Operand, values: Values): Values {
  const offsets = offsetsOf(operand);
  const last = new Map(offsets.map((offset, i) => [offset, at(values, i)]));
  return offsets.map((offset) => last.get(offset) ?? 0);
}

const extents = fc.constantFrom(1, 2, 3, 4, 6);
const units: fc.Arbitrary<UnitChoice> = fc.record({
  inputs: fc.array(
    fc.record({
      dtype: fc.constantFrom("float", "half", "bfloat16", "double", "int", "int64"),
      shape: fc.array(extents, { maxLength: 3 }),
      layout: fc.nat(4),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  steps: fc.array(
    fc.record({ op: fc.nat(29), first: fc.nat(5), second: fc.nat(20), third: fc.nat(5), detail: fc.nat(40) }),
    { maxLength: 12 },
  ),
  results: fc.array(fc.nat(14), { maxLength: 2 }),
  layout: fc.nat(3),
});

describe("a unit", () => {
  it("is its steps, one by one", () => {
    fc.assert(
      fc.property(units, fc.nat(1000), (choice, seed) => check(makeUnit(choice), seed)),
      { numRuns: 1500, seed: 1 },
    );
  });
});
