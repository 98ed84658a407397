/** What the simulator knows of kernels of GPUs beyond the times in a profile. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildPrimitive, type Primitive } from "../../bench/compare/primitives.ts";
import { Fusion, groupedMatmul, matmul, type TensorView } from "@braid-compiler/braid";
import { compile } from "../../src/compile/compile.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";

const gpus = parseProfile(readFileSync("profiles/4xH200.json", "utf8"), "4xH200");
const twoGpus = parseProfile(readFileSync("profiles/2xH100.json", "utf8"), "2xH100");
const graph = { graph: true };

describe("a GEMM", () => {
  const time = (profile: MachineProfile, m: number, n: number): number => {
    const problem = { primitive: "tp-columnwise", devices: 1, m, n, k: 4096, dtype: "bfloat16" } as const;
    const { program } = compile(buildPrimitive("compute-only", problem, { chunks: 1, outputs: 1 }), {
      devices: 1,
      verify: "off",
    });
    return simulate(program, profile, graph).milliseconds;
  };

  it.each([
    [832, 15_360, 896, 15_360],
    [1024, 1000, 1024, 1024],
  ])("of %i x %i takes as long as one of whole tiles, %i x %i", (m, n, wholeM, wholeN) => {
    expect(time(gpus, m, n)).toBe(time(gpus, wholeM, wholeN));
    expect(time(gpus, m, n)).toBeLessThan(time(gpus, wholeM + 128, wholeN + 128));
  });

  it("of a CPU has no such tiles", () => {
    const cpu: MachineProfile = { ...gpus, on: "cpu" };
    expect(time(cpu, 832, 15_360)).toBeLessThan(time(cpu, 896, 15_360));
  });
});

it("a grouped matmul, and the gradient of its matrices, take about as long as one GEMM of all rows", () => {
  const time = (build: (x: TensorView, f: Fusion) => TensorView): number => {
    const f = new Fusion();
    f.output(build(f.input([8192, 4096], "bfloat16"), f));
    const { program } = compile(f, { devices: 1, verify: "off" });
    return simulate(program, gpus, graph).milliseconds;
  };
  const ofOne = time((x, f) => matmul(x, f.input([4096, 7168], "bfloat16")));
  const rows = time((x, f) => groupedMatmul(x, f.input([8, 4096, 7168], "bfloat16"), f.input([8], "int64")));
  const terms = time((x, f) => groupedMatmul(x, f.input([8192, 7168], "bfloat16"), f.input([8], "int64")));
  // Measured on one H200, groups of one size and drawn at random: 1.05 to 1.35.
  expect(rows / ofOne).toBeGreaterThan(1.05);
  expect(rows / ofOne).toBeLessThan(1.35);
  expect(terms / ofOne).toBeCloseTo(1, 1);
});

describe("a kernel in peers' memory", () => {
  /** Milliseconds of the kernel of a whole reduction. */
  const time = (primitive: Primitive, devices: number): number => {
    const problem = { primitive, devices, m: 8192, n: 8192, k: 1024, dtype: "bfloat16" } as const;
    const { program } = compile(buildPrimitive("serial", problem, { chunks: 1, outputs: 1 }), {
      devices,
      backend: "cuda",
      overlap: false,
      insertReshardingAfter: true,
      verify: "off",
    });
    const { trace } = simulate(program, gpus, graph);
    return Math.max(...trace.map(({ start, end }) => end - start));
  };

  // A reduce-scatter reads what an all-reduce reads, and writes nothing to peers: half the bytes.
  it("takes longer for its bytes if a thread has few loads in flight: it has one peer, and only reads", () => {
    expect(time("tp-rowwise", 2) / time("tp-allreduce", 2)).toBeGreaterThan(0.7);
  });

  it("finds SMs beside a GEMM that leaves some, unless that is much shorter than those that were measured", () => {
    const time = (k: number, smMargin: number): number => {
      const problem = { primitive: "tp-allreduce", devices: 2, m: 8192, n: 8192, k, dtype: "bfloat16" } as const;
      const { program } = compile(buildPrimitive("collective", problem, { chunks: 4, outputs: 1 }), {
        devices: 2,
        backend: "cuda",
        insertReshardingAfter: true,
        schedule: { computeStreams: 1, ...(smMargin > 0 ? { smMargin } : {}) },
        verify: "off",
      });
      return simulate(program, twoGpus, graph).milliseconds;
    };
    expect(time(8192, 0)).toBeLessThan(time(8192, 8));
    expect(time(1024, 0)).toBeGreaterThan(time(1024, 8));
  });

  it("has enough loads in flight where it has three peers", () => {
    expect(time("tp-rowwise", 4) / time("tp-allreduce", 4)).toBeLessThan(0.6);
  });
});

it("batches of a grouped matmul that share a matrix share its tiles; without, half a tile of each is not full", () => {
  const time = (batches: readonly number[], sharing: number): number => {
    const f = new Fusion();
    const x = f.input([...batches, 128, 2048], "bfloat16");
    const w = f.input(
      [...batches.map((extent, i) => (i < batches.length - sharing ? extent : 1)), 1, 2048, 2048],
      "bfloat16",
    );
    f.output(groupedMatmul(x, w, f.input([...batches, 1], "int64")));
    return simulate(compile(f, { devices: 1, verify: "off" }).program, gpus, graph).milliseconds;
  };
  const [shared, apart] = [time([32, 2], 1), time([64], 0)];
  // 64 x (96 + 32) rows, and 32 for each of 32 or of 64 matrices, which are also read.
  expect(apart / shared).toBeGreaterThan((128 + 32) / (128 + 16));
  expect(apart / shared).toBeLessThan(2);
});
