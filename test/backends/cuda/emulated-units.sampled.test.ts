/** Compares random units as generated CUDA kernels, run on the CPU, with their ops one by one. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../../src/support/random.ts";
import { makeUnit } from "../../kernels/random-unit.ts";
import { asStored, offsetsOf } from "../../kernels/run-kernel.ts";
import { unitChoices } from "../../kernels/unit-arbitrary.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { differences, type Expected, wholeValues } from "./emulate/differences.ts";
import { runs } from "../../support/suite.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-units is skipped: ${obstacle}`);

describe.skipIf(obstacle !== null)("generated kernels", () => {
  it("compute random units as their steps say, at addresses of every alignment", () => {
    const many = runs({ quick: 20, long: 250 });
    const choices = fc.sample(unitChoices, { numRuns: many, seed: 5 });
    const random = createRandom(3);
    const cases = choices.flatMap((choice, i): readonly Expected[] => {
      const unit = makeUnit(choice);
      if (unit.steps.some((step) => step.kind === "Unary" && (step.op === "exp" || step.op === "gelu"))) return [];
      const inputs = unit.inputs.map((input) =>
        asStored(input, wholeValues(input.dtype, offsetsOf(input).length, random)),
      );
      return [{ name: `unit ${i}`, kernel: unit, inputs, expected: evaluateUnit(unit, inputs) }];
    });
    expect(cases.length).toBeGreaterThan(many / 2);
    expect(differences(cases, [256, 16, 8])).toEqual([]);
  });
});
