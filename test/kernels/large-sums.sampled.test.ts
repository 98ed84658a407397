/** Sums and contractions of millions of floats: one accumulator would lose most of what it adds. */
import { describe, expect, it } from "vitest";
import type { Kernel } from "../../src/commands/kernel.ts";
import { createKernelLibrary, scratchBytes } from "../../src/kernels/kernel-library.ts";
import { createWasmMemory } from "../../src/support/webassembly.ts";
import { everyNth } from "../support/suite.ts";
import { count, operand } from "./run-kernel.ts";

/** The first element of the output where all elements of the inputs, floats, are `value`. */
function ofEqual(kernel: Kernel, value: number): number {
  const operands = [...kernel.inputs, ...kernel.outputs].map(({ shape }) => Math.ceil(count(shape) / 16) * 64);
  const addresses = operands.map((_, i) => 64 + operands.slice(0, i).reduce((sum, bytes) => sum + bytes, 0));
  const scratch = { address: 64 + operands.reduce((sum, bytes) => sum + bytes, 0), bytes: scratchBytes(kernel) };
  const memory = createWasmMemory(scratch.address + scratch.bytes, { shared: false });
  new Float32Array(memory.buffer, 64, (scratch.address - 64) / 4).fill(value);
  const run = createKernelLibrary({ memory, scratch }).prepare(kernel);
  run(addresses.slice(0, -1), addresses.slice(-1));
  return new Float32Array(memory.buffer, addresses.at(-1), 1)[0] ?? NaN;
}

function sumOf(shape: readonly number[], axes: readonly number[]): Kernel {
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  return { kind: "reduction", op: "sum", axes, inputs: [operand("float", shape)], outputs: [operand("float", kept)] };
}

function dotOf(k: number): Kernel {
  const inputs = [operand("float", [1, k]), operand("float", [k, 1])];
  return { kind: "matmul", inputs, outputs: [operand("float", [1, 1])] };
}

describe("large sums", () => {
  const ones = [
    ["a vector", sumOf([2 ** 25], [0]), 2 ** 25],
    ["columns", sumOf([2 ** 24, 2], [0]), 2 ** 24],
    ["a dot product", dotOf(2 ** 25), 2 ** 25],
  ] as const;
  it.each(everyNth(ones, 3))("of 2^25 ones, %s", (_, kernel, expected) => {
    expect(ofEqual(kernel, 1)).toBe(expected);
  });

  it("of 4,194,304 times 0.1 are off by some units in the last place", () => {
    const exact = 4_194_304 * Math.fround(0.1);
    for (const kernel of [sumOf([4_194_304], [0]), sumOf([4_194_304, 2], [0]), sumOf([2, 4_194_304], [1])]) {
      expect(Math.abs(ofEqual(kernel, 0.1) - exact) / exact).toBeLessThan(32 * 2 ** -24);
    }
    const product = 4_194_304 * Math.fround(0.1) ** 2;
    expect(Math.abs(ofEqual(dotOf(4_194_304), 0.1) - product) / product).toBeLessThan(32 * 2 ** -24);
  });
});
