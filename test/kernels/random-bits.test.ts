/** Kernels of random numbers against the oracle's definition, in JavaScript and in WebAssembly, whole and in parts. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { splitKernel } from "../../src/kernels/nests/split-kernel.ts";
import { checkUnit } from "./check-unit.ts";
import { randomBitsUnit } from "./random-creation-steps.ts";

const shapes = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 3 });

it("have the bits of the definition", () => {
  fc.assert(
    fc.property(shapes, fc.nat({ max: 3 }), fc.nat(), (shape, form, seed) => {
      const extents = shape.map((extent, axis) => (axis === 0 ? extent : Math.ceil(extent / 8)));
      checkUnit(randomBitsUnit(extents, form), seed);
    }),
    { numRuns: 15, seed: 1 },
  );
});

it("run in parts, which are cut along the vectors", () => {
  const parts = splitKernel(randomBitsUnit([64, 48], 0), 4);
  expect(parts.map(({ inputOffsets }) => inputOffsets)).toEqual([0, 1, 2, 3].map((part) => [0, 128 * part, 0]));
});
