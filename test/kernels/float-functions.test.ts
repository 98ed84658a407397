/**
 * Functions with a definition for float32, in WebAssembly SIMD against generated JavaScript, bit for bit: special
 * values, both sides of every threshold, and random bits, in loops that leave a rest. `runKernel` compares the two.
 */
import { describe, expect, it } from "vitest";
import type { Kernel, UnaryKernel } from "../../src/commands/kernel.ts";
import { planKernel } from "../../src/kernels/kernel-plan.ts";
import { splitFunctions } from "../../src/kernels/kernel-library.ts";
import { bitsToFloat, floatToBits } from "../../src/numerics/convert.ts";
import { elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { operand, runKernel, type Values } from "./run-kernel.ts";

const ops: readonly UnaryKernel["op"][] = [
  "exp",
  "log",
  "tanh",
  "normalCdf",
  "sigmoid",
  "silu",
  "gelu",
  "geluTanh",
  "softplus",
  "rsqrt",
];

/** Where a definition changes its branch, or its result its kind. */
const thresholds = [
  0.625,
  1,
  2,
  15,
  5.021668434143066,
  17.4,
  100,
  174.67,
  175.6,
  88.8,
  104,
  0.3465736,
  87.33654,
  88.72284,
  103.27893,
  103.97208,
  Math.SQRT1_2,
  Math.SQRT2,
  2 ** -126,
  2 ** -149,
  2 ** -103,
  2 ** 23,
  13.2,
  14.17,
  9.02,
  17.33,
];

function floats(count: number): Values {
  const random = createRandom(count);
  const neighbours = thresholds.flatMap((value) =>
    [-1, 0, 1].flatMap((step) => {
      const x = bitsToFloat(floatToBits(value) + step);
      return [x, -x];
    }),
  );
  const bits = Array.from({ length: count }, () => bitsToFloat(random.integer(2 ** 32) | 0));
  const near = Array.from({ length: count }, () => Math.fround((random.float() - 0.5) * 2 ** random.integer(9)));
  return [NaN, Infinity, -Infinity, 0, -0, 3.4e38, -3.4e38, ...neighbours, ...bits, ...near].map((x) => Math.fround(x));
}

describe.each(ops)("%s", (op) => {
  const of = (dtype: "float" | "half" | "bfloat16", values: Values): Values => {
    const flat = operand(dtype, [values.length]);
    return at(runKernel({ kind: "unary", op, inputs: [flat], outputs: [flat] }, [values]), 0);
  };

  it.each([1, 2, 3, 300, 301, 303])("of %i random floats", (count) => {
    of("float", floats(count));
  });

  it.each(["half", "bfloat16"] as const)("of %s", (dtype) => {
    const words = Uint16Array.from({ length: 2 ** 12 + 3 }, (_, i) => i * 16 + (i % 16));
    of(
      dtype,
      Array.from(words, (_, i) => elementsOf(dtype, words).get(i)),
    );
  });

  it("computes nothing twice", () => {
    const flat = operand("float", [8]);
    const kernel: Kernel = { kind: "unary", op, inputs: [flat], outputs: [flat] };
    const nest = planKernel(kernel).phases.flatMap((phase) =>
      phase.kind === "nest" ? [splitFunctions(phase.nest)] : [],
    );
    // As trees, exp has 95 operations, and log 210.
    const operations = JSON.stringify(nest).match(/"primitive"/g) ?? [];
    expect(operations.length).toBeLessThan(60);
  });
});
