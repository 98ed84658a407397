/**
 * Compares the sources of generated kernels with golden files, and compiles them if NVRTC is installed (it needs no
 * GPU).
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { attentionLayout } from "../../../src/backends/cuda/attention/layout.ts";
import { createCompiler } from "../../../src/backends/cuda/kernels/compiler.ts";
import type { KernelSource } from "../../../src/backends/cuda/kernels/kernel-source.ts";
import { kernelSteps } from "../../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import { decodeKernels } from "../../../src/backends/cuda/kernels/decode-kernel.ts";
import { groupedKernels } from "../../../src/backends/cuda/kernels/grouped-kernel.ts";
import { gemmKernel } from "../../../src/backends/cuda/kernels/gemm-kernel.ts";
import type { Kernel, Operand, SdpaKernel } from "../../../src/commands/kernel.ts";
import { at } from "../../../src/support/invariant.ts";
import { operand } from "../../kernels/run-kernel.ts";
import { sampleKernels } from "./sample-kernels.ts";

function sourcesOf(name: string): readonly KernelSource[] {
  const kernel = sampleKernels[name];
  if (kernel === undefined) throw new Error(`no kernel ${name}`);
  return sources(kernel);
}

function sources(kernel: Kernel): readonly KernelSource[] {
  return kernelSteps(kernel, () => 256).steps.map((step) => {
    if (step.kind === "kernel") return step.source;
    const { contraction, a, b, bias, addend, scales = [], c } = step;
    const operands = [a, b, bias, addend, ...scales, c].filter((operand) => operand !== null);
    return gemmKernel(
      contraction,
      operands.map(({ memory }) => memory),
      addend !== null,
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

describe.each(["grouped-rows-bfloat16", "grouped-terms-bfloat16"])("%s on tensor cores", (name) => {
  const hopper = { capability: 90, multiprocessors: 132 };
  const sourceOf = (): KernelSource | null => {
    const kernel = sampleKernels[name];
    const [step] = kernel === undefined ? [] : kernelSteps(kernel, () => 16).steps;
    if (step?.kind !== "gemm") throw new Error("a grouped matmul is a GEMM");
    const operands = [step.a, step.b, step.bias, step.c].flatMap((each) => each?.memory ?? []);
    return groupedKernels(step.contraction, operands, hopper)?.multiply ?? null;
  };

  it("has the source of its golden file", async () => {
    const { text, grid, sharedBytes = 0 } = sourceOf() ?? {};
    const file = path.join(import.meta.dirname, "golden", `${name}-hopper.cu`);
    await expect(`// ${grid?.join(" x ")} blocks, ${sharedBytes} bytes of shared memory\n${text}`).toMatchFileSnapshot(
      file,
    );
  });

  it.skipIf(obstacle !== null)("compiles for Hopper, and for GPUs that it is not for", () => {
    for (const capability of [90, 100]) {
      expect(at(createCompiler({ ...target, capability }).compile(sourceOf()?.text ?? ""), 0)).toBe(0x7f);
    }
  });
});

describe.each([
  ["attention-few-queries-bfloat16", 1, null],
  ["attention-few-queries-half-causal", 3, 256],
])("%s", (name, queries, window) => {
  const kernel: SdpaKernel = {
    kind: "sdpa",
    causal: queries === 1 ? null : "bottomRight",
    window,
    scale: 0.125,
    inputs: [
      ...[
        [2, 3, 8, queries, 64],
        [2, 3, 1, 900, 64],
        [2, 3, 1, 900, 48],
      ].map((shape) => operand(queries === 1 ? "bfloat16" : "half", shape)),
      operand(queries === 1 ? "int" : "int64", [2, 1, 1]),
    ],
    outputs: [
      operand(queries === 1 ? "bfloat16" : "half", [2, 3, 8, queries, 48]),
      operand("float", [2, 3, 8, queries]),
    ],
  };
  const layout = attentionLayout(kernel, [256, 256, 256, 8, 256, 256]);
  const { parts, sum, partBytes } = decodeKernels(kernel, layout, queries === 1 ? "bfloat16" : "half", {
    capability: 90,
    multiprocessors: 132,
  });
  const sources = [parts, ...(sum === null ? [] : [sum])];

  it("has the source of its golden file", async () => {
    const texts = sources.map(
      ({ text, grid, block, sharedBytes = 0 }) =>
        `// grid ${grid.join(" x ")}, block ${block.join(" x ")}, ${sharedBytes} bytes of shared memory\n${text}`,
    );
    await expect(`// ${partBytes} bytes of parts\n${texts.join("\n")}`).toMatchFileSnapshot(
      path.join(import.meta.dirname, "golden", `${name}.cu`),
    );
  });

  it("reads its operands, and lengths of any alignment, where they are", () => {
    expect(layout.copyBytes).toBe(0);
  });

  it.skipIf(obstacle !== null)("compiles for Hopper and Ampere", () => {
    for (const capability of [80, 90]) {
      const compiler = createCompiler({ ...target, capability });
      for (const { text } of sources) expect(at(compiler.compile(text), 0)).toBe(0x7f);
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

describe("a GEMM that adds its last input", () => {
  const shape = [70, 40];
  const steps = (addend: Operand, output: Operand = operand("bfloat16", shape)) =>
    kernelSteps(
      {
        kind: "matmul",
        inputs: [operand("bfloat16", [70, 50]), operand("bfloat16", [50, 40]), addend],
        outputs: [output],
        addend: true,
      },
      () => 256,
    );

  it("is one GEMM of the strides of both, with no scratch", () => {
    for (const strides of [
      [40, 1],
      [1, 70],
      [96, 2],
    ]) {
      const both = operand("bfloat16", shape, strides);
      const { steps: found, scratchBytes } = steps(both, both);
      expect(scratchBytes).toBe(0);
      expect(found).toMatchObject([
        {
          kind: "gemm",
          contraction: { accumulate: true, bias: null, c: { row: strides[0], column: strides[1] } },
          bias: null,
          a: { memory: { kind: "input", position: 0 } },
          b: { memory: { kind: "input", position: 1 } },
          addend: { memory: { kind: "input", position: 2 }, offset: 0 },
          c: { memory: { kind: "output", position: 0 }, offset: 0 },
        },
      ]);
    }
  });

  it("is a GEMM and a kernel that adds where the strides differ", () => {
    for (const strides of [
      [1, 70],
      [96, 1],
      [0, 1],
    ]) {
      const { steps: found } = steps(operand("bfloat16", shape, strides));
      expect(found.map(({ kind }) => kind)).toEqual(["gemm", "kernel"]);
      expect(found[0]).toMatchObject({ addend: null });
    }
  });

  it("reads the addend where others add to what the output holds", () => {
    const [adding, accumulating] = ["linear-bfloat16-with-addend", "matmul-half-adding"].map(
      (name) => at(sourcesOf(name), 0).text,
    );
    expect(adding).toMatch(/\*bias, const [a-z ]+ \*addend, [a-z ]+ \*c\)/);
    expect(adding?.split("addend[").length).toBe(2);
    expect(accumulating).not.toContain("addend");
  });
});
