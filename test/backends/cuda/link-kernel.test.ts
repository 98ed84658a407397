/** The kernel of a combination over links: its source against a golden file, its number of blocks, and its barriers. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { linkKernel } from "../../../src/backends/cuda/ops/device-ops.ts";
import { barrierParameters, noBarriers, type Barriers } from "../../../src/backends/cuda/kernels/text/barrier-text.ts";
import type { KernelSource } from "../../../src/backends/cuda/kernels/kernel-source.ts";
import type { CombineKernel, Operand } from "../../../src/commands/kernel.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { invariant } from "../../../src/support/invariant.ts";

const round: Barriers = { before: { signals: 3, waits: 3 }, after: { signals: 3, waits: 3 } };

function sum(dtype: DType, count: number, members: number, outputs = 1): CombineKernel {
  const operand: Operand = { dtype, shape: [count], strides: [1] };
  const all = (length: number): readonly Operand[] => Array.from({ length }, () => operand);
  return { kind: "combine", op: "sum", inputs: all(members), outputs: all(outputs) };
}

function source(kernel: CombineKernel, barriers: Barriers, alignment = 256): KernelSource {
  const made = linkKernel(kernel, () => alignment, barriers);
  invariant(made !== null, "a combination is one loop over elements");
  return made;
}

it("has the source of its golden file: barriers around a loop of few blocks", async () => {
  const { text, grid, block } = source(sum("bfloat16", 1 << 22, 4), round);
  await expect(`// grid ${grid.join(" x ")}, block ${block.join(" x ")}\n${text}`).toMatchFileSnapshot(
    path.join(import.meta.dirname, "golden", "sum-over-links.cu"),
  );
});

it("has 8 blocks where accesses are wide, more where they are narrow, and no more than there is work for", () => {
  const blocks = (kernel: CombineKernel, alignment = 256): number => source(kernel, noBarriers, alignment).grid[0];
  expect(blocks(sum("bfloat16", 1 << 22, 4))).toBe(8);
  expect(blocks(sum("float", 1 << 22, 4))).toBe(8);
  expect(blocks(sum("bfloat16", 1 << 22, 4), 4)).toBe(32);
  expect(blocks(sum("bfloat16", (1 << 22) + 1, 4))).toBe(64);
  expect(blocks(sum("bfloat16", 8 * 512, 4))).toBe(1);
  expect(blocks(sum("bfloat16", 8 * 512 + 8, 4))).toBe(2);
});

it("has as many loads on their way whatever the number of participants", () => {
  const vectors = (members: number): number =>
    Number(/for \(int u = 0; u < (\d+); u\+\+\)/.exec(source(sum("bfloat16", 1 << 22, members), noBarriers).text)?.[1]);
  expect([2, 4, 8, 32].map(vectors)).toEqual([8, 4, 2, 1]);
});

describe("barriers", () => {
  it("are no lines and no parameters where there are none", () => {
    expect(barrierParameters(noBarriers)).toEqual([]);
    expect(source(sum("float", 1 << 20, 2), noBarriers).text).not.toMatch(/raise|await|atomicAdd|syncthreads/);
  });

  it("need no gate in a kernel of one block", () => {
    const { text } = source(sum("float", 1000, 2), round);
    expect(text).toContain("braid_await(beforeAwait2, progress, (unsigned)beforeSays2);");
    expect(text).not.toMatch(/\(gate|\*gate =|isLast/);
  });

  it("raise after the work alone if nothing is awaited before it", () => {
    const behind = { ...round, before: { signals: 0, waits: 0 } };
    const { text } = source(sum("float", 1 << 20, 2), behind);
    expect(text).toContain("atomicAdd(gate, 1u)");
    expect(text).not.toContain("before");
  });

  it("need no count of blocks if nothing is awaited before the work and nothing follows it", () => {
    const raised = { before: { signals: 2, waits: 0 }, after: { signals: 0, waits: 0 } };
    const { text } = source(sum("float", 1 << 20, 2), raised);
    expect(text).toContain("if (threadIdx.x == 32) braid_raise(beforeRaise1);");
    expect(text).not.toMatch(/atomicAdd|isLast/);
  });

  it("reset the words after the work if nothing follows it, and otherwise before the signals", () => {
    const reset = "*(volatile unsigned *)beforeAwait2 = 0;";
    expect(source(sum("float", 1 << 20, 2), { ...round, after: { signals: 0, waits: 0 } }).text).toContain(reset);
    const { text } = source(sum("float", 1 << 20, 2), round);
    const places = [reset, "__syncthreads();\n    if (threadIdx.x == 0) braid_raise(afterRaise0);"].map((line) =>
      text.lastIndexOf(line),
    );
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
  });

  it("share the threads of a block where there are more than it has warps", () => {
    const many = { before: { signals: 20, waits: 0 }, after: { signals: 0, waits: 0 } };
    expect(source(sum("float", 1 << 20, 2), many).text).toContain("if (threadIdx.x == 96) braid_raise(beforeRaise19);");
  });
});
