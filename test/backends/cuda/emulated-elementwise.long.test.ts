/** Random expressions of all elementwise functions as CUDA kernels, run on the CPU, within the oracle's bounds. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { at } from "../../../src/support/invariant.ts";
import { elementwiseCase, elementwiseChoices } from "../../kernels/random-elementwise.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { runEmulated } from "./emulate/run-emulated.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-elementwise is skipped: ${obstacle}`);

it.skipIf(obstacle !== null)("random expressions have the oracle's results in generated kernels", () => {
  const choices = fc.sample(elementwiseChoices, { numRuns: 400, seed: 19 });
  const cases = choices.map(elementwiseCase);
  const found = runEmulated(cases);
  const bad = cases.flatMap(({ worst, kernel }, i) => {
    const difference = worst(at(at(found, i), 0));
    return difference === null ? [] : [{ difference, steps: kernel.steps }];
  });
  expect(bad).toEqual([]);
});
