/**
 * Simulated times of sums: of slots by their measured kernel and dtype; within rows, and without measurements, like
 * other kernels.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, type DType, Fusion, link, lower, type Program, record, sum } from "@braid-compiler/braid";
import { combinedSlots } from "../../src/tune/calibrate/measure-profile.ts";
import { slotSum } from "../../src/tune/calibrate/probe-fusions.ts";
import { commandCosts } from "../../src/simulate/command-cost.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { verify } from "../../src/verify/verify.ts";
import { roundProfile } from "./profile.ts";

function linked(fusion: Fusion): Program {
  return link([record(lower(fusion, { rank: 0 }), { rank: 0, sizes: new Map(), streams: 1 })]);
}

function reduction(shape: readonly number[], axes: readonly number[], dtype: DType): Program {
  const f = new Fusion();
  const a = f.input([...shape], dtype);
  const c = sum(a, [...axes]);
  f.output(c);
  for (const tensor of [a, c]) tensor.setDeviceMesh(DeviceMesh.range(1));
  return linked(f);
}

function microseconds(program: Program, profile: MachineProfile = roundProfile): number {
  return simulate(program, profile, { graph: true }).milliseconds * 1000 - profile.costs.run;
}

describe("a sum", () => {
  it("of slots takes what a reduction was timed to take, of the nearest dtype", () => {
    // 4 slots of 100 floats and their sum: 2,000 bytes.
    expect(microseconds(reduction([4, 100], [0], "float"))).toBeCloseTo(80);
    expect(microseconds(reduction([1, 4, 100], [1], "float"))).toBeCloseTo(80);
    expect(microseconds(reduction([4, 100], [0], "bfloat16"))).toBeCloseTo(40);
  });

  it("of parts takes what a combination of their dtype was timed to take", () => {
    expect(microseconds(combinedSlots(reduction([4, 100], [0], "float")))).toBeCloseTo(60);
    expect(microseconds(combinedSlots(reduction([4, 100], [0], "bfloat16")))).toBeCloseTo(20);
  });

  it("within rows takes what other kernels take for their bytes", () => {
    expect(microseconds(reduction([96, 4], [1], "float"))).toBeCloseTo(19.2);
  });

  it("takes what other kernels take where sums were not timed", () => {
    const { reductions: _, ...earlier } = roundProfile;
    expect(microseconds(reduction([4, 100], [0], "float"), earlier)).toBeCloseTo(20);
    expect(microseconds(combinedSlots(reduction([4, 100], [0], "float")), earlier)).toBeCloseTo(20);
  });
});

describe("an all-reduce in peers' memory", () => {
  const f = new Fusion();
  const a = f.input([2, 128], "float");
  const c = sum(a, [0]);
  f.output(c);
  for (const tensor of [a, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
  a.axis(0).parallelize("DIDx");
  const options = { backend: "cuda" } as const;
  const lists = [0, 1].map((rank) => record(lower(f, { rank, ...options }), { rank, sizes: new Map(), streams: 1 }));
  const program = link(lists);
  // Half of the peer's input is read, half of its output written: 512 bytes.
  const timed = { ...roundProfile, reductionsInPeers: [{ bytes: 512, microseconds: 70 }] };

  it("takes what its kernel was timed to take, the signals and waits around it included", () => {
    expect(microseconds(program, timed)).toBeCloseTo(70);
  });

  it("takes two signals and what a copy takes where its kernel was not timed", () => {
    expect(microseconds(program)).toBeCloseTo(51.2 + 2 * roundProfile.costs.signal);
  });

  it("holds its rank's links, and not the device", () => {
    const [first] = simulate(program, timed, { graph: true }).trace;
    expect(commandCosts(program, timed, () => {})(first?.rank ?? 0, first?.command ?? 0)).toMatchObject({
      resources: ["out 0", "in 0"],
      needsSms: true,
      deviceUse: "beside",
    });
  });
});

describe("what calibration times", () => {
  it("reads and writes the bytes that it says, whatever the dtype", () => {
    for (const dtype of ["bfloat16", "float"] as const) {
      const buffers = linked(slotSum(4, 80_000, dtype)).buffers.filter(({ rank }) => rank === 0);
      expect(buffers.reduce((total, { bytes }) => total + bytes, 0)).toBe(80_000);
    }
  });

  it("combines the same slots, free of races", () => {
    const program = combinedSlots(linked(slotSum(4, 80_000, "bfloat16")));
    expect(program.kernels.map(({ kind, inputs }) => [kind, inputs.length])).toEqual([["combine", 4]]);
    const [launch] = program.ranks[0]?.commands ?? [];
    expect(launch).toMatchObject({ kind: "launch", inputs: [0, 1, 2, 3].map((i) => ({ offset: i * 16_000 })) });
    expect(verify(program).findings).toEqual([]);
  });
});
