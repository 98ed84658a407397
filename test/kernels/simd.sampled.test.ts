/**
 * Loops in WebAssembly SIMD, long enough for unrolled blocks, single groups and remaining lanes. `runKernel` compares
 * them with the generated JavaScript, bit for bit; the other tests of this folder compare both with references.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Kernel } from "../../src/commands/kernel.ts";
import { planKernel } from "../../src/kernels/kernel-plan.ts";
import { usesLanes } from "../../src/kernels/simd/compile-lane-nests.ts";
import { signed32, unsigned } from "../../src/support/wasm/encoding.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { createRandom } from "../../src/support/random.ts";
import { makeUnit } from "./random-unit.ts";
import { asStored, offsetsOf, operand, runKernel, type Values } from "./run-kernel.ts";
import { unitChoicesOf } from "./unit-arbitrary.ts";
import { edges, randomValues } from "./values.ts";
import { combinations } from "../support/split-cases.ts";
import { draws, sample } from "../support/suite.ts";

/** Random values with edges among them. */
function inputsOf(kernel: Kernel, seed: number): readonly Values[] {
  const random = createRandom(seed);
  return kernel.inputs.map((input) => {
    const values = randomValues(input.dtype, offsetsOf(input).length, random);
    return asStored(
      input,
      values.map((value) => edges[input.dtype][random.integer(50)] ?? value),
    );
  });
}

const dtypes = ["double", "float", "half", "bfloat16", "int", "int64", "bool"] as const;
/** Around groups of 4, blocks of 16 and 32, and pairs of vectors. */
const lengths = [1, 3, 4, 7, 16, 33, 66, 131] as const;

const settings = sample(combinations({ dtype: dtypes, length: lengths }), 5);

it.each(settings)("casts $length elements of $dtype to every dtype", ({ dtype, length }) => {
  for (const to of dtypes) {
    for (const step of [1, 3]) {
      const from = operand(dtype, [length], [step]);
      const kernel: Kernel = { kind: "cast", inputs: [from], outputs: [operand(to, [length], [4 - step])] };
      runKernel(kernel, inputsOf(kernel, length));
    }
  }
});

it.each(settings)("reduces along either axis, to $length elements of $dtype", ({ dtype, length }) => {
  const ops = dtype === "bool" ? (["amax", "amin"] as const) : (["sum", "prod", "amax", "amin"] as const);
  for (const op of ops) {
    for (const axis of [0, 1]) {
      const shape = axis === 0 ? [9, length] : [length, 9];
      const kernel: Kernel = {
        kind: "reduction",
        op,
        axes: [axis],
        inputs: [operand(dtype, shape)],
        outputs: [operand(dtype, [length])],
      };
      runKernel(kernel, inputsOf(kernel, length));
    }
  }
});

describe.each(dtypes)("in %s", (dtype) => {
  it("adds transposed, repeated and offset operands", () => {
    if (dtype === "bool") return;
    for (const [rows, columns] of [
      [37, 21],
      [16, 32],
      [5, 70],
      [70, 3],
    ] as const) {
      for (const strides of [
        [1, rows],
        [0, 1],
        [1, 0],
        [2 * columns, 2],
      ]) {
        const shape = [rows, columns];
        const kernel: Kernel = {
          kind: "binary",
          op: "add",
          inputs: [operand(dtype, shape, strides), operand(dtype, shape)],
          outputs: [operand(dtype, shape)],
        };
        runKernel(kernel, inputsOf(kernel, rows));
      }
    }
  });
});

it("gives the bits of the JavaScript for any unit", () => {
  const extents = [1, 3, 4, 9, 17, 35];
  fc.assert(
    fc.property(unitChoicesOf(extents), fc.nat(1000), (choice, seed) => {
      const unit = makeUnit(choice);
      runKernel(unit, inputsOf(unit, seed));
    }),
    { ...draws({ quick: 50, long: 300 }), seed: 4 },
  );
});

describe("usesLanes", () => {
  const nestsOf = (kernel: Kernel) =>
    planKernel(kernel).phases.flatMap((phase) => (phase.kind === "nest" ? [phase.nest] : []));
  const unary = (op: "neg" | "exp" | "gelu" | "sin", dtype: DType, shape: readonly number[]): Kernel => ({
    kind: "unary",
    op,
    inputs: [operand(dtype, shape)],
    outputs: [operand(dtype, shape)],
  });
  const uses = (kernel: Kernel, use: "auto" | "always" | "never") =>
    nestsOf(kernel).map((nest) => usesLanes(nest, use));

  it("takes large loops, small ones on demand, and none where they are off", () => {
    expect(uses(unary("neg", "float", [4096]), "auto")).toEqual([true]);
    expect(uses(unary("neg", "float", [40]), "auto")).toEqual([false]);
    expect(uses(unary("neg", "float", [40]), "always")).toEqual([true]);
    expect(uses(unary("neg", "float", [4096]), "never")).toEqual([false]);
  });

  it("leaves the engine's own functions to JavaScript", () => {
    expect(uses(unary("exp", "double", [4096]), "always")).toEqual([false]);
    expect(uses(unary("sin", "half", [4096]), "always")).toEqual([false]);
    expect(uses(unary("exp", "float", [4096]), "auto")).toEqual([true]);
    expect(uses(unary("gelu", "half", [4096]), "auto")).toEqual([true]);
  });

  it("leaves a sum of everything to JavaScript: its order has no neighbours", () => {
    const kernel: Kernel = {
      kind: "reduction",
      op: "sum",
      axes: [0],
      inputs: [operand("float", [4096])],
      outputs: [operand("float", [])],
    };
    expect(uses(kernel, "auto")).toEqual([false]);
  });
});

describe("numbers in LEB128", () => {
  const decode = (bytes: readonly number[]): bigint =>
    bytes.reduce((sum, byte, i) => sum | (BigInt(byte & 0x7f) << BigInt(7 * i)), 0n);

  it.each([0, 1, 63, 64, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])("unsigned %i", (value) => {
    expect(decode(unsigned(value))).toBe(BigInt(value));
  });

  it.each([0, 1, 63, 64, -1, -64, -65, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 32 - 1])("signed %i", (value) => {
    const bytes = signed32(value);
    expect(BigInt.asIntN(7 * bytes.length, decode(bytes))).toBe(BigInt(value | 0));
  });
});
