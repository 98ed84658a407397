/** Units that fast-check draws and shrinks; random-unit.ts defines the meaning of the numbers. */
import fc from "fast-check";
import type { UnitChoice } from "./random-unit.ts";

/** Units over inputs of these extents. */
export function unitChoicesOf(extents: readonly number[]): fc.Arbitrary<UnitChoice> {
  return fc.record({
    inputs: fc.array(
      fc.record({
        dtype: fc.constantFrom("float", "half", "bfloat16", "double", "int", "int64"),
        shape: fc.array(fc.constantFrom(...extents), { maxLength: 3 }),
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
}

export const unitChoices = unitChoicesOf([1, 2, 3, 4, 6]);
