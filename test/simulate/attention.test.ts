/** Simulated times of attention: by measured rates and the length of a sequence, or by its usual share of a GEMM's. */
import { describe, expect, it } from "vitest";
import { compile, Fusion, gradients, type MachineProfile, sdpa } from "@braid-compiler/braid";
import { calibrationSizes } from "../../src/tune/calibrate/calibration-host.ts";
import { attentionRates } from "../../src/tune/calibrate/measure-profile.ts";
import { attention } from "../../src/tune/calibrate/probe-fusions.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { roundProfile } from "./profile.ts";

const rates = { dtype: "float", lengths: [64, 256], forward: [1e-3, 4e-3], backward: [5e-4, 1e-3] } as const;
const noTime = [{ bytes: 1, microseconds: 0 }];
const profile: MachineProfile = { ...roundProfile, memory: noTime, attention: [rates] };

function microseconds(fusion: Fusion, on: MachineProfile): number {
  const { program } = compile(fusion, { devices: 1 });
  return simulate(program, on, { graph: true }).milliseconds * 1000 - on.costs.run;
}

const shapeOf = (length: number) => ({ heads: 2, headSize: 32, length });

function time(length: number, passes: "forward" | "both" = "forward", on = profile): number {
  return microseconds(attention(1, shapeOf(length), "float", passes), on);
}

describe("attention takes", () => {
  it("its operations at the measured rate, without the scores that its mask leaves out", () => {
    // 4 x 2 heads x 256 x 256 / 2 scores x 32 elements: 8.4 million operations.
    expect(time(256)).toBeCloseTo(8_388_608 / 4e3, 1);
    expect(time(256, "both") - time(256)).toBeCloseTo((2.5 * 8_388_608) / 1e3, 1);
  });

  it("less for a window forward, and as much backward", () => {
    const windowed = (passes: "forward" | "both", window: number | null): number => {
      const f = new Fusion();
      const wrt = [f.input([2, 1024, 32]), f.input([2, 1024, 32]), f.input([2, 1024, 32])] as const;
      const { output } = sdpa(...wrt, { causal: "topLeft", window });
      f.output(output);
      if (passes === "both") {
        const cotangents = [f.input([2, 1024, 32])];
        for (const each of gradients(f, { of: [output], cotangents, wrt })) if (each !== null) f.output(each);
      }
      return microseconds(f, profile);
    };
    // Of 1024 x 1024 / 2 scores, 128 + 256 of 1024 keys leave 0.61.
    expect(windowed("forward", 128) / windowed("forward", null)).toBeCloseTo(0.61, 2);
    const backward = (window: number | null): number => windowed("both", window) - windowed("forward", window);
    expect(backward(128)).toBeCloseTo(backward(null), 1);
  });

  it.each([
    [[1, 1, 1024], 0.66, 0.73],
    [[2, 1024, 1024], 0.54, 0.57],
  ] as const)("longer with what is added to scores, of shape %o", (shape, forward, backward) => {
    const added = (passes: "forward" | "both", mask: readonly number[] | null): number => {
      const f = new Fusion();
      const wrt = [f.input([2, 1024, 32]), f.input([2, 1024, 32]), f.input([2, 1024, 32])] as const;
      const { output } = sdpa(...wrt, { causal: "topLeft", ...(mask === null ? {} : { mask: f.input(mask) }) });
      f.output(output);
      const cotangents = [f.input([2, 1024, 32])];
      const all = passes === "forward" ? [] : gradients(f, { of: [output], cotangents, wrt });
      for (const each of all) if (each !== null) f.output(each);
      return microseconds(f, profile);
    };
    const back = (mask: readonly number[] | null): number => added("both", mask) - added("forward", mask);
    expect(added("forward", null) / added("forward", shape)).toBeCloseTo(forward, 2);
    expect(back(null) / back(shape)).toBeCloseTo(backward, 2);
  });

  it("a rate between those of the lengths around its own, and outside of them that of the nearest", () => {
    expect(time(128)).toBeCloseTo(2_097_152 / 2.5e3, 1);
    expect(time(512)).toBeCloseTo(4 * time(256), 1);
  });

  it("at least as long as other kernels of its bytes", () => {
    const fast = { ...rates, forward: [1e3, 1e3] };
    // Three operands and a result of 64 KiB each, and the logarithms of 512 sums: 10 us for 1,000 bytes.
    expect(time(256, "forward", { ...roundProfile, attention: [fast] })).toBeCloseTo((4 * 65_536 + 4 * 512) / 100, 0);
  });

  it("half of the rate of the fastest GEMM without measurements, which is said", () => {
    const { attention: _, ...without } = profile;
    const { program } = compile(attention(1, shapeOf(64), "float", "forward"), { devices: 1 });
    const { milliseconds, assumptions } = simulate(program, without, { graph: true });
    const [most = NaN] = profile.products[0]?.teraflops ?? [];
    expect(milliseconds * 1000 - profile.costs.run).toBeCloseTo(524_288 / (0.5 * most * 1e6), 0);
    expect(assumptions).toContain("attention is timed at its usual share of the rate of GEMMs");
  });
});

it("without measurements, each dtype has its share of the GEMMs of that dtype", () => {
  const { attention: _, ...without } = profile;
  const [grid] = profile.products;
  const products = grid === undefined ? [] : [grid, { ...grid, dtype: "bfloat16" as const, teraflops: [0.8192] }];
  const [float, bfloat16, half] = (["float", "bfloat16", "half"] as const).map((dtype) => {
    const fusion = attention(1, shapeOf(8192), dtype, "forward");
    return simulate(compile(fusion, { devices: 1 }).program, { ...without, products }, { graph: true });
  });
  const of = (run = float): number => (run?.milliseconds ?? NaN) * 1000 - profile.costs.run;
  expect(of(float) / of(bfloat16)).toBeCloseTo(100, 0);
  expect(of(half)).toBe(of(bfloat16));
  expect(half?.assumptions).toContain("attention in half is timed as in bfloat16");
  expect(float?.assumptions.filter((text) => text.includes("timed as in"))).toEqual([]);
});

it("calibration finds the rates of the machine that it runs on", async () => {
  const sizes = calibrationSizes.cpu;
  const took = async (fusion: Fusion): Promise<number> => microseconds(fusion, profile);
  const found = await attentionRates({ devices: 1, sizes, say: () => {}, took }, "float");
  expect(found.lengths).toEqual([64, 256]);
  for (const pass of ["forward", "backward"] as const) {
    found[pass].forEach((rate, i) => expect(rate / (rates[pass][i] ?? NaN)).toBeCloseTo(1, 2));
  }
});
