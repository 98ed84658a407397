/** Random expressions of all elementwise functions: JavaScript and WebAssembly agree, within the oracle's bounds. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { at } from "../../src/support/invariant.ts";
import { draws } from "../support/suite.ts";
import { elementwiseCase, elementwiseChoices } from "./random-elementwise.ts";
import { runKernel } from "./run-kernel.ts";

it("random expressions have the oracle's results on the CPU", () => {
  fc.assert(
    fc.property(elementwiseChoices, (choices) => {
      const { kernel, inputs, worst } = elementwiseCase(choices);
      expect(worst(at(runKernel(kernel, inputs), 0))).toBeNull();
    }),
    draws({ quick: 60, long: 1000 }),
  );
});
