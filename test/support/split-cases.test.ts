import fc from "fast-check";
import { expect, it } from "vitest";
import { combinations, splitCases } from "./split-cases.ts";

it("combinations: the last dimension varies fastest", () => {
  expect(combinations({ a: [1, 2], b: ["x", "y"] })).toEqual([
    { a: 1, b: "x" },
    { a: 1, b: "y" },
    { a: 2, b: "x" },
    { a: 2, b: "y" },
  ]);
});

it("every case is in one suite, and quick has every n-th case and every value", () => {
  const dimension = fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(dimension, dimension, dimension, fc.integer({ min: 1, max: 40 }), (a, b, c, every) => {
      const cases = combinations({ a, b, c });
      const { quick, long } = splitCases(cases, every);
      expect(new Set([...quick, ...long])).toEqual(new Set(cases));
      expect(quick.length + long.length).toBe(cases.length);
      expect(quick).toEqual(expect.arrayContaining(cases.filter((_, i) => i % every === 0)));
      for (const name of ["a", "b", "c"] as const) {
        expect(new Set(quick.map((row) => row[name]))).toEqual(new Set(cases.map((row) => row[name])));
      }
      // No more than the sample and one case for each value.
      expect(quick.length).toBeLessThanOrEqual(Math.ceil(cases.length / every) + a.length + b.length + c.length);
    }),
  );
});
