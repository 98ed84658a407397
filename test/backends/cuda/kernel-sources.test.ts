/**
 * Compares the sources of generated kernels with golden files, and compiles them if NVRTC is installed (it needs no
 * GPU).
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { createCompiler } from "../../../src/backends/cuda/kernels/compiler.ts";
import type { KernelSource } from "../../../src/backends/cuda/kernels/kernel-source.ts";
import { kernelSteps } from "../../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import { gemmKernel } from "../../../src/backends/cuda/kernels/gemm-kernel.ts";
import type { Kernel, Operand } from "../../../src/commands/kernel.ts";
import { at } from "../../../src/support/invariant.ts";
import { sampleKernels } from "./sample-kernels.ts";

function sourcesOf(name: string): readonly KernelSource[] {
  const kernel = sampleKernels[name];
  if (kernel === undefined) throw new Error(`no kernel ${name}`);
  return sources(kernel);
}

function sources(kernel: Kernel): readonly KernelSource[] {
  return kernelSteps(kernel, () => 256).steps.map((step) => {
    if (step.kind === "kernel") return step.source;
    const { contraction, a, b, bias, c } = step;
    const operands = [a, b, ...(bias === null ? [] : [bias]), c];
    return gemmKernel(
      contraction,
      operands.map(({ memory }) => memory),
    );
  });
}

const names = Object.keys(sampleKernels);
const target = { rank: 0, capability: 90, driverVersion: 0, cacheFolder: null };

/** Why NVRTC cannot be used here; null if it can. */
function compilerObstacle(): string | null {
  try {
    createCompiler(target).compile('extern "C" __global__ void braid_kernel() {}');
    return null;
  } catch (error) {
    return error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
  }
}

const obstacle = compilerObstacle();
if (obstacle !== null) console.log(`compiling kernels is skipped: ${obstacle}`);

describe.each(names)("%s", (name) => {
  it("has the source of its golden file", async () => {
    const text = sourcesOf(name).map(
      ({ text: source, grid, block, parameters }) =>
        `// grid ${grid.join(" x ")}, block ${block.join(" x ")}, parameters ${JSON.stringify(parameters)}\n${source}`,
    );
    await expect(text.join("\n")).toMatchFileSnapshot(path.join(import.meta.dirname, "golden", `${name}.cu`));
  });

  it.skipIf(obstacle !== null)("compiles for Hopper and Ampere", () => {
    for (const capability of [80, 90]) {
      const compiler = createCompiler({ ...target, capability });
      for (const { text } of sourcesOf(name)) expect(at(compiler.compile(text), 0)).toBe(0x7f);
    }
  });
});

describe("a combination into several outputs", () => {
  const sourcesFor = (members: number): readonly KernelSource[] => {
    const all = Array.from({ length: members }, (): Operand => ({ dtype: "float", shape: [4096], strides: [1] }));
    return sources({ kind: "combine", op: "sum", inputs: all, outputs: all });
  };
  it.each([2, 4, 8])(
    "is one kernel for %i members: every input is loaded once, every output stored once",
    (members) => {
      const [source, ...others] = sourcesFor(members);
      expect(others).toEqual([]);
      const names = ["input", "output"].flatMap((kind) => Array.from({ length: members }, (_, i) => `${kind}${i}`));
      expect(source?.parameters.map(({ kind }, i) => `${kind}${i % members}`)).toEqual(names);
      const uses = names.map((name) => source?.text.split(`(${name} `).length);
      expect(uses).toEqual(names.map(() => 2));
    },
  );

  it("reads the first output back where there are more than a kernel takes", () => {
    const [first, second, ...others] = sourcesFor(10);
    expect(others).toEqual([]);
    expect(first?.parameters).toHaveLength(18);
    expect(second?.parameters).toEqual([0, 8, 9].map((position) => ({ kind: "output", position })));
  });
});
