/** Results of generated CUDA kernels that reduce in parts, run on the CPU. */
import { describe, expect, it } from "vitest";
import { kernelSteps } from "../../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import type { Kernel, UnitKernel } from "../../../src/commands/kernel.ts";
import { createRandom } from "../../../src/support/random.ts";
import { count, operand, runKernel } from "../../kernels/run-kernel.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { randomValues } from "../../kernels/values.ts";
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

  it("write the neutral element where nothing is reduced", () => {
    const kernel: Kernel = {
      kind: "reduction",
      op: "amax",
      axes: [1],
      inputs: [operand("float", [3, 0])],
      outputs: [operand("float", [3])],
    };
    const expected = [Array.from({ length: 3 }, () => -Infinity)];
    expect(differences([{ name: "amax of nothing", kernel, inputs: [[]], expected }])).toEqual([]);
  });

  it("reduce columns in parts of parts", () => {
    const random = createRandom(6);
    const values = wholeValues("float", 300_000 * 2, random);
    const kernel: Kernel = {
      kind: "reduction",
      op: "sum",
      axes: [0],
      inputs: [operand("float", [300_000, 2])],
      outputs: [operand("float", [2])],
    };
    expect(kernelSteps(kernel, () => 256).steps).toHaveLength(3);
    const total = (column: number): number =>
      values.reduce<number>((sum, x, i) => (i % 2 === column ? sum + Number(x) : sum), 0);
    const expected = [[total(0), total(1)]];
    expect(differences([{ name: "sum", kernel, inputs: [values], expected }])).toEqual([]);
  });

  it("contract in the blocks of the CPU's kernels, bit for bit", () => {
    const random = createRandom(7);
    const settings = [
      { dtype: "float", k: 300, accumulate: false },
      { dtype: "half", k: 300, accumulate: true },
      { dtype: "double", k: 9000, accumulate: false },
      { dtype: "float", k: 17_000, accumulate: true },
    ] as const;
    const cases = settings.map(({ dtype, k, accumulate }): Expected => {
      const [m, n] = [2, 3];
      const kernel: Kernel = {
        kind: "matmul",
        inputs: [operand(dtype, [m, k]), operand(dtype, [k, n])],
        outputs: [operand(dtype, [m, n])],
        ...(accumulate ? { accumulate } : {}),
      };
      const inputs = [m * k, k * n].map((length) => randomValues(dtype, length, random));
      const held = accumulate ? { held: [randomValues(dtype, m * n, random)] } : {};
      const name = `${dtype} over ${k}, ${accumulate ? "adding" : "storing"}`;
      return { name, kernel, inputs, ...held, expected: runKernel(kernel, inputs, held) };
    });
    expect(differences(cases)).toEqual([]);
  });
});
