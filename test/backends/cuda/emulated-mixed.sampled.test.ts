/** Units of mixed dtypes as generated CUDA kernels, run on the CPU, and the smallest of those that were wrong. */
import { describe, expect, it } from "vitest";
import type { UnitKernel } from "../../../src/commands/kernel.ts";
import { createRandom } from "../../../src/support/random.ts";
import { mixedUnit } from "../../kernels/mixed-units.ts";
import { operand } from "../../kernels/run-kernel.ts";
import { buildUnit } from "../../kernels/unit-builder.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { runs } from "../../support/suite.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { differences, type Expected, wholeValues } from "./emulate/differences.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-mixed is skipped: ${obstacle}`);

/** Compilers take longer than linearly for long sources. */
const together = 50;

function expectedOf(name: string, kernel: UnitKernel): Expected {
  const random = createRandom(3);
  const inputs = kernel.inputs.map(({ dtype, shape }) =>
    wholeValues(
      dtype,
      shape.reduce((product, extent) => product * extent, 1),
      random,
    ),
  );
  return { name, kernel, inputs, expected: evaluateUnit(kernel, inputs) };
}

/** By what was wrong with them. */
const smallest: Readonly<Record<string, UnitKernel>> = {
  "a sort along an axis that several loops read": {
    kind: "unit",
    inputs: [operand("float", [6, 4])],
    outputs: [operand("int64", [24])],
    values: [
      { dtype: "float", shape: [6, 4] },
      { dtype: "float", shape: [4, 6] },
      { dtype: "float", shape: [24] },
      { dtype: "int64", shape: [24] },
    ],
    steps: [
      { kind: "Permute", order: [1, 0], inputs: [0], output: 1 },
      { kind: "Reshape", inputs: [1], output: 2 },
      { kind: "Argsort", axis: 0, descending: false, inputs: [2], output: 3 },
    ],
    results: [3],
  },
  "rows of 49 in a row": buildUnit([[2, 49]], (u, x) => [u.unary("neg", u.reshape(x, [98]))]),
  // 32 elements a thread: too many to keep their negatives, too.
  "a row that is read again in other loops than those that load it": buildUnit([[1, 256]], (u, x) => {
    const peak = u.reduce("amax", x, [1]);
    const negated = u.unary("neg", u.reshape(x, [16, 16]));
    return [peak, negated, u.cast(negated, "double")];
  }),
};

describe.skipIf(obstacle !== null)("generated kernels of mixed dtypes", () => {
  it("compute units as their steps say, at addresses of mixed alignment", () => {
    // Long has other units than quick.
    const first = runs({ quick: 0, long: 1000 });
    const many = runs({ quick: 30, long: 1500 });
    for (let start = first; start < first + many; start += together) {
      const cases = Array.from({ length: Math.min(together, first + many - start) }, (_, i): Expected => {
        const seed = start + i;
        return { name: `mixed unit ${seed}`, ...mixedUnit(seed) };
      });
      expect(differences(cases, [256, 256, 16, 8, 256, 4, 2])).toEqual([]);
    }
  }, 900_000);

  it("compute the smallest units that were wrong", () => {
    const cases = Object.entries(smallest).map(([name, kernel]) => expectedOf(name, kernel));
    expect(differences(cases)).toEqual([]);
  });
});
