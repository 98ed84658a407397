/**
 * Parts of a kernel, run last to first, against the whole kernel, bit for bit; and along which axis kernels are cut.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Kernel } from "../../src/commands/kernel.ts";
import { createKernelLibrary, scratchBytes } from "../../src/kernels/kernel-library.ts";
import { kernelWork } from "../../src/kernels/nests/split-kernel.ts";
import { splitKernel } from "../../src/kernels/nests/split-kernel.ts";
import { elementsOf, storageView } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { createWasmMemory } from "../../src/support/webassembly.ts";
import { makeUnit } from "./random-unit.ts";
import { count, offsetsOf, operand, spanBytes } from "./run-kernel.ts";
import { buildUnit } from "./unit-builder.ts";
import { unitChoices } from "./unit-arbitrary.ts";
import { edges, randomValues } from "./values.ts";
import { draws, runs } from "../support/suite.ts";

/**
 * Runs the kernel and its parts on equal memories and compares all bytes but the scratch. Returns the number of parts.
 */
function check(kernel: Kernel, most: number, seed = 1): number {
  const parts = splitKernel(kernel, most);
  const scratch = Math.max(scratchBytes(kernel), ...parts.map((part) => scratchBytes(part.kernel)));
  let next = Math.ceil(scratch / 64) * 64;
  const addresses = [...kernel.inputs, ...kernel.outputs].map((each) => {
    const address = next;
    next += Math.ceil(spanBytes(each) / 64) * 64;
    return address;
  });
  const [inputs, outputs] = [addresses.slice(0, kernel.inputs.length), addresses.slice(kernel.inputs.length)];
  const run = (pieces: ReturnType<typeof splitKernel>): Uint8Array => {
    const memory = createWasmMemory(next);
    const random = createRandom(seed);
    for (const [i, each] of kernel.inputs.entries()) {
      const elements = elementsOf(each.dtype, storageView(each.dtype, memory.buffer, at(inputs, i)));
      for (const offset of offsetsOf(each)) {
        const edge = edges[each.dtype][random.integer(60)];
        elements.set(offset, edge ?? at(randomValues(each.dtype, 1, random), 0));
      }
    }
    const library = createKernelLibrary({ memory, scratch: { address: 0, bytes: scratch } });
    for (const { kernel: piece, inputOffsets, outputOffsets } of pieces.toReversed()) {
      library.prepare(piece)(
        inputs.map((address, i) => address + at(inputOffsets, i)),
        outputs.map((address, i) => address + at(outputOffsets, i)),
      );
    }
    return new Uint8Array(memory.buffer, Math.ceil(scratch / 64) * 64);
  };
  const whole = {
    kernel,
    inputOffsets: kernel.inputs.map(() => 0),
    outputOffsets: kernel.outputs.map(() => 0),
  };
  if (Buffer.compare(run([whole]), run(parts)) !== 0) expect.fail(`parts differ from ${JSON.stringify(kernel)}`);
  return parts.length;
}

const float = (shape: readonly number[], strides?: readonly number[]) => operand("float", shape, strides);

const kernels: readonly (readonly [name: string, kernel: Kernel, parts: number])[] = [
  ["a vector", { kind: "unary", op: "neg", inputs: [float([100])], outputs: [float([100])] }, 3],
  ["a scalar", { kind: "unary", op: "neg", inputs: [float([])], outputs: [float([])] }, 1],
  ["nothing", { kind: "unary", op: "neg", inputs: [float([0, 9])], outputs: [float([0, 9])] }, 1],
  [
    "a cast to padded columns",
    { kind: "cast", inputs: [operand("double", [7, 5])], outputs: [operand("half", [7, 5], [1, 8])] },
    3,
  ],
  [
    "an addition of a broadcast row",
    { kind: "binary", op: "add", inputs: [float([6, 8]), float([6, 8], [0, 1])], outputs: [float([6, 8])] },
    3,
  ],
  [
    "a sum over the first axis",
    { kind: "reduction", op: "sum", axes: [0], inputs: [float([9, 64])], outputs: [float([64])] },
    3,
  ],
  [
    "a sum over everything",
    { kind: "reduction", op: "sum", axes: [0, 1], inputs: [float([9, 64])], outputs: [float([])] },
    1,
  ],
  [
    "a product over the inner axis",
    { kind: "reduction", op: "prod", axes: [1], inputs: [float([9, 3, 4])], outputs: [float([9, 4])] },
    3,
  ],
  ["rows", { kind: "matmul", inputs: [float([24, 5]), float([5, 7])], outputs: [float([24, 7])] }, 3],
  ["columns of one row", { kind: "matmul", inputs: [float([1, 5]), float([5, 100])], outputs: [float([1, 100])] }, 3],
  [
    "batches with a broadcast operand",
    { kind: "matmul", inputs: [float([12, 3, 5]), float([1, 5, 2])], outputs: [float([12, 3, 2])] },
    3,
  ],
  [
    "a matrix by a vector",
    { kind: "matmul", inputs: [float([12, 5]), float([5])], outputs: [float([12])] },
    // One cache line holds the whole output.
    1,
  ],
  [
    "linear with a bias, by rows",
    { kind: "linear", inputs: [float([2, 6, 5]), float([7, 5]), float([7])], outputs: [float([2, 6, 7])] },
    2,
  ],
  [
    "linear with a bias, by columns",
    { kind: "linear", inputs: [float([1, 5]), float([70, 5]), float([70])], outputs: [float([1, 70])] },
    3,
  ],
  [
    "a product that is added to an input, by rows",
    {
      kind: "matmul",
      inputs: [float([24, 5]), float([5, 7]), float([24, 7])],
      outputs: [float([24, 7])],
      addend: true,
    },
    3,
  ],
  [
    "linear that is added to a transposed input, by columns",
    {
      kind: "linear",
      inputs: [float([1, 5]), float([70, 5]), float([70]), float([1, 70], [3, 2])],
      outputs: [float([1, 70])],
      addend: true,
    },
    3,
  ],
  [
    "a combination",
    { kind: "combine", op: "sum", inputs: [float([9, 3]), float([9, 3]), float([9, 3])], outputs: [float([9, 3])] },
    3,
  ],
  [
    "a combination into several outputs",
    {
      kind: "combine",
      op: "sum",
      inputs: [float([9, 3]), float([9, 3])],
      outputs: [float([9, 3]), float([9, 3], [1, 9]), float([9, 3], [5, 1])],
    },
    3,
  ],
  ["a fill", { kind: "fill", inputs: [], outputs: [float([9, 3])] }, 3],
];

describe("splitKernel", () => {
  it.each(kernels)("cuts %s", (_, kernel, parts) => {
    expect(check(kernel, 3)).toBe(parts);
  });

  it("cuts a unit with its scratch, views and several results", () => {
    const softmax = buildUnit([[12, 40]], (u, x) => {
      const shifted = u.binary("sub", x, u.broadcast(u.reduce("amax", x, [1]), 1));
      const powers = u.unary("exp", shifted);
      return [u.binary("div", powers, u.broadcast(u.reduce("sum", powers, [1]), 1)), u.permute(powers, [1, 0])];
    });
    expect(check(softmax, 4)).toBe(4);
  });

  it("cuts through a reshape that keeps the axis, and not through another", () => {
    const kept = buildUnit([[8, 6]], (u, x) => [u.unary("neg", u.reshape(x, [8, 2, 3]))]);
    const joined = buildUnit([[2, 12]], (u, x) => [u.unary("neg", u.reshape(x, [24]))]);
    expect(check(kept, 2)).toBe(2);
    expect(check(joined, 2)).toBe(1);
  });

  it("leaves whole a unit in which parts would compute a value twice", () => {
    const normalised = buildUnit([[64], [1]], (u, x, y) => [u.binary("mul", x, u.unary("exp", y))]);
    expect(check(normalised, 2)).toBe(1);
  });

  it("cuts in place", () => {
    const kernel: Kernel = { kind: "unary", op: "neg", inputs: [float([64])], outputs: [float([64])] };
    for (const { inputOffsets, outputOffsets } of splitKernel(kernel, 4)) expect(inputOffsets).toEqual(outputOffsets);
  });

  it("gives parts of one length one kernel, and whole cache lines", () => {
    const kernel: Kernel = { kind: "unary", op: "neg", inputs: [float([64])], outputs: [float([64])] };
    const parts = splitKernel(kernel, 4);
    expect(new Set(parts.map((part) => part.kernel)).size).toBe(1);
    expect(parts.map((part) => part.outputOffsets)).toEqual([[0], [64], [128], [192]]);
  });

  it("gives the bits of the whole for any unit", () => {
    const counts = { quick: 70, long: 350 };
    let cut = 0;
    fc.assert(
      fc.property(unitChoices, fc.integer({ min: 2, max: 5 }), fc.nat(1000), (choice, most, seed) => {
        if (check(makeUnit(choice), most, seed) > 1) cut++;
      }),
      { ...draws(counts), seed: 2 },
    );
    expect(cut).toBeGreaterThan(runs(counts) / 7);
  });
});

describe("kernelWork", () => {
  it("is the multiply-adds of a product, and shared fairly by parts", () => {
    const kernel: Kernel = { kind: "matmul", inputs: [float([64, 32]), float([32, 16])], outputs: [float([64, 16])] };
    expect(kernelWork(kernel)).toBeGreaterThanOrEqual(64 * 32 * 16);
    const parts = splitKernel(kernel, 4).map((part) => kernelWork(part.kernel));
    expect(parts.reduce((sum, work) => sum + work, 0)).toBe(kernelWork(kernel));
  });

  it("counts what is read in a reduction, and functions for more than arithmetic", () => {
    const shape = [100, 10];
    const sum: Kernel = { kind: "reduction", op: "sum", axes: [0], inputs: [float(shape)], outputs: [float([10])] };
    const unary = (op: "neg" | "exp" | "gelu"): Kernel => ({
      kind: "unary",
      op,
      inputs: [float(shape)],
      outputs: [float(shape)],
    });
    expect(kernelWork(sum)).toBeGreaterThan(count(shape));
    expect(kernelWork(unary("neg"))).toBeLessThan(kernelWork(unary("exp")));
    expect(kernelWork(unary("exp"))).toBeLessThan(kernelWork(unary("gelu")));
  });
});
