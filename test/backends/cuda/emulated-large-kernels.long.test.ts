/** Results of generated CUDA kernels with many blocks, run on the CPU. */
import { describe, expect, it } from "vitest";
import type { Kernel, UnitKernel } from "../../../src/commands/kernel.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { count, operand } from "../../kernels/run-kernel.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { differences, wholeValues } from "./emulate/differences.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-large-kernels is skipped: ${obstacle}`);

describe.skipIf(obstacle !== null)("generated kernels", () => {
  it("take several vectors per thread of a large tensor, the last block not full", () => {
    const random = createRandom(8);
    const shape = [2100, 1001];
    const values = wholeValues("int", count(shape), random);
    const row = wholeValues("int", 1001, random);
    const kernel: Kernel = {
      kind: "binary",
      op: "sub",
      inputs: [operand("int", shape), operand("int", shape, [0, 1])],
      outputs: [operand("int", shape)],
    };
    const flat = operand("int", [count(shape) - 1]);
    const [left, right] = [values.slice(1), values.slice(0, -1)];
    const whole: Kernel = { kind: "binary", op: "add", inputs: [flat, flat], outputs: [flat] };
    const repeated = Array.from({ length: 2100 }, () => row).flat();
    expect(
      differences([
        {
          name: "rows",
          kernel,
          inputs: [values, repeated],
          expected: [values.map((x, i) => Number(x) - Number(at(repeated, i)))],
        },
        {
          name: "flat",
          kernel: whole,
          inputs: [left, right],
          expected: [left.map((x, i) => Number(x) + Number(at(right, i)))],
        },
      ]).map((line) => line.slice(0, 300)),
    ).toEqual([]);
  });

  it.each([
    { name: "one row", shape: [4100], axis: 0, descending: false },
    { name: "the largest of columns", shape: [4099, 2], axis: 0, descending: true },
  ])(
    "sort what a block does not hold: $name",
    ({ name, shape, axis, descending }) => {
      const values = wholeValues("float", count(shape), createRandom(9)).with(7, NaN);
      const kernel: UnitKernel = {
        kind: "unit",
        inputs: [operand("float", shape)],
        outputs: [operand("int64", shape)],
        values: [
          { dtype: "float", shape },
          { dtype: "int64", shape },
        ],
        steps: [{ kind: "Argsort", axis, descending, inputs: [0], output: 1 }],
        results: [1],
      };
      const expected = evaluateUnit(kernel, [values]);
      expect(differences([{ name, kernel, inputs: [values], expected }])).toEqual([]);
    },
    300_000,
  );
});
