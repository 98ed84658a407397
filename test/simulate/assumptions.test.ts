/** What a simulation takes instead of figures that the profile lacks is said, and nothing where all are there. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  compile,
  DeviceMesh,
  type DType,
  Fusion,
  matmul,
  type MachineProfile,
  set,
  simulate,
  sum,
} from "@braid-compiler/braid";
import type { Assumption } from "../../src/simulate/assumption.ts";
import { gemmCosts } from "../../src/simulate/gemm-cost.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { timingsOfTransfer } from "../../src/simulate/transfer-cost.ts";
import { choose } from "../../src/tune/choose/choose.ts";
import { reasonText } from "../../src/support/wording.ts";
import { roundProfile } from "./profile.ts";

/** A gather over all devices, and a matmul of the result. */
function gathered(devices: number, dtype: DType): Fusion {
  const f = new Fusion();
  const a = f.input([devices, 16, 16], dtype);
  const b = f.input([16, 16], dtype);
  const whole = set(a);
  const c = matmul(whole, b);
  f.output(c);
  for (const tensor of [a, b, whole, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  return f;
}

function assumptionsOf(fusion: Fusion, devices: number, profile: MachineProfile = roundProfile): readonly string[] {
  const { program } = compile(fusion, { devices, streams: 1 });
  return simulate(program, profile, { graph: true }).assumptions;
}

describe("assumptions of a simulation", () => {
  it("are none where the profile has the team size, the collective and the dtype", () => {
    expect(assumptionsOf(gathered(2, "float"), 2)).toEqual([]);
  });

  it("name the team size and the dtype that were taken", () => {
    expect(assumptionsOf(gathered(8, "half"), 8)).toEqual([
      "Allgather over 8 ranks is timed as Allgather over 2 ranks, with 7 times its latency and 1.75 times its time per byte",
      "no calibration for half: GEMMs are timed as in float",
    ]);
  });

  it("have the mean error of all GEMMs: one that is larger than any that was measured says little of a run of others", () => {
    const profile = parseProfile(
      readFileSync(new URL("../../profiles/2xH200.json", import.meta.url), "utf8"),
      "2xH200",
    );
    const errorOf = (others: number): number => {
      const f = new Fusion();
      let x = f.input([4096, 4096], "bfloat16");
      for (let i = 0; i < others; i++) x = matmul(x, f.input([4096, 4096], "bfloat16"));
      f.output(matmul(x, f.input([4096, 65536], "bfloat16")));
      const found: Assumption[] = [];
      gemmCosts(compile(f, { devices: 1, on: "cuda" }).program, profile, (each) => void found.push(each));
      expect(found.map(({ of }) => of)).toEqual(["gemms"]);
      return found[0]?.error ?? 0;
    };
    // Sixteen times as many columns: as long as all others together.
    expect(errorOf(16) / errorOf(0)).toBeCloseTo(0.5, 1);
  });

  it("name the collective that stands for another", () => {
    const f = new Fusion();
    const a = f.input([2, 64], "float");
    const c = sum(a, [0]);
    f.output(c);
    for (const tensor of [a, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
    a.axis(0).parallelize("DIDx");
    expect(assumptionsOf(f, 2)).toContain("Allreduce over 2 ranks is timed as Allgather over 2 ranks");
  });

  it("name sums over slots of another dtype, or without timings", () => {
    const total = (dtype: DType): Fusion => {
      const f = new Fusion();
      const a = f.input([4, 100], dtype);
      const c = sum(a, [0]);
      f.output(c);
      for (const tensor of [a, c]) tensor.setDeviceMesh(DeviceMesh.range(1));
      return f;
    };
    const { reductions: _, ...earlier } = roundProfile;
    expect(assumptionsOf(total("float"), 1)).toEqual([]);
    expect(assumptionsOf(total("half"), 1)).toEqual(["sums over slots in half are timed as in float"]);
    expect(assumptionsOf(total("float"), 1, earlier)).toEqual([
      "sums over slots are timed as other kernels of their bytes",
    ]);
  });

  it("stand below the line that says why a schedule was chosen", () => {
    const { considered, ...choice } = choose(gathered(4, "half"), { devices: 4 }, roundProfile);
    const text = "assumed: Allgather over 4 ranks is timed as Allgather over 2 ranks, with 3 times its";
    expect(reasonText(choice).split("\n")[1]).toContain(text);
    expect(considered[0]?.assumptions).toContain("no calibration for half: GEMMs are timed as in float");
  });
});

describe("a transfer of a team that was not measured", () => {
  const measured = [
    { bytes: 100, microseconds: 10 },
    { bytes: 300, microseconds: 40 },
  ];

  it.each([
    // Three times the steps of 2 ranks, and 3/4 of the bytes instead of 1/2.
    ["Allgather", 4, [30, 75]],
    ["Allreduce", 4, [30, 75]],
    ["ReduceScatter", 8, [70, 122.5]],
    // The root sends all of it.
    ["Broadcast", 4, [30, 60]],
    ["Reduce", 4, [30, 60]],
    // As measured.
    ["Allgather", 2, [10, 40]],
    // A team of one has no steps.
    ["Allgather", 1, [10, 40]],
  ] as const)("%s over %i ranks is scaled from one over 2", (type, ranks, expected) => {
    const timings = timingsOfTransfer([{ type, ranks: 2, timings: measured }], { type, ranks }, () => undefined);
    expect(timings.map(({ microseconds }) => microseconds)).toEqual(expected);
  });

  it("takes the times of the nearest size", () => {
    const sizes = [2, 4, 16].map((ranks) => ({ type: "Allgather" as const, ranks, timings: measured }));
    const said: string[] = [];
    timingsOfTransfer(sizes, { type: "Allgather", ranks: 12 }, ({ text }) => said.push(text));
    expect(said).toEqual([
      "Allgather over 12 ranks is timed as Allgather over 16 ranks, with 0.73 times its latency and 0.98 times its time per byte",
    ]);
  });
});
