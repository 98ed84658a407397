/** Results of generated CUDA kernels that reduce in parts, run on the CPU. */
import { describe, expect, it } from "vitest";
import type { UnitKernel } from "../../../src/commands/kernel.ts";
import { createRandom } from "../../../src/support/random.ts";
import { count, operand } from "../../kernels/run-kernel.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { differences, type Expected, wholeValues } from "./emulate/differences.ts";
import { combinations } from "../../support/split-cases.ts";
import { sample } from "../../support/suite.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-reductions is skipped: ${obstacle}`);

describe.skipIf(obstacle !== null)("generated kernels", () => {
  it("reduce long rows and columns in parts", () => {
    const random = createRandom(4);
    const shapes = [
      { shape: [3, 70_000], axes: [1], dtype: "float" },
      { shape: [9000, 40], axes: [0], dtype: "bfloat16" },
      { shape: [2, 5000, 6], axes: [1], dtype: "int" },
      { shape: [70_001], axes: [0], dtype: "half" },
      { shape: [4, 3, 2050], axes: [0, 2], dtype: "double" },
      { shape: [300, 256], axes: [0], dtype: "half" },
      { shape: [37, 1024], axes: [1], dtype: "bfloat16" },
    ] as const;
    const settings = combinations({ reduced: shapes, op: ["sum", "amax"] as const });
    const cases = sample(settings, 7).map(({ reduced: { shape, axes, dtype }, op }): Expected => {
      const kept = shape.filter((_, axis) => !axes.some((each) => each === axis));
      const values = wholeValues(dtype, count(shape), random);
      const kernel: UnitKernel = {
        kind: "unit",
        inputs: [operand(dtype, shape)],
        outputs: [operand(dtype, kept)],
        values: [
          { dtype, shape },
          { dtype, shape: kept },
        ],
        steps: [{ kind: "Reduction", op, axes, inputs: [0], output: 1 }],
        results: [1],
      };
      return {
        name: `${op} of [${shape.join(", ")}]`,
        kernel,
        inputs: [values],
        expected: evaluateUnit(kernel, [values]),
      };
    });
    expect(differences(cases)).toEqual([]);
  });
});
