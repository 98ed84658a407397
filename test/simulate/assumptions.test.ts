/** What a simulation takes instead of figures that the profile lacks is said, and nothing where all are there. */
import { describe, expect, it } from "vitest";
import { compile, DeviceMesh, type DType, Fusion, matmul, type MachineProfile, set, simulate, sum } from "braid";
import { choose } from "../../src/tune/choose/choose.ts";
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
      "Allgather over 8 ranks is timed as Allgather over 2 ranks",
      "GEMMs in half are timed as in float",
    ]);
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

  it("stand in the line that says why a schedule was chosen", () => {
    const { reason, considered } = choose(gathered(4, "half"), { devices: 4 }, roundProfile);
    expect(reason).toContain("; assumed: Allgather over 4 ranks is timed as Allgather over 2 ranks, GEMMs in half are");
    expect(considered[0]?.assumptions).toContain("GEMMs in half are timed as in float");
  });
});
