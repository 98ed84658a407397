/** Which schedule is chosen on machines that favour one or the other; what is chosen has the oracle's result. */
import { describe, expect, it } from "vitest";
import { DeviceMesh, DiagnosticError, Fusion, linear } from "braid";
import { candidateStreams, chooseSchedule } from "../../src/executor/choose-schedule.ts";
import { serial as serialCandidate } from "../../src/executor/schedule-candidates.ts";
import type { MachineProfile, Timing } from "../../src/simulate/machine-profile.ts";
import { expectOracle } from "../support/expect-oracle.ts";

/** Rates in bytes per microsecond. */
function rate(fixed: number, bytesPerMicrosecond: number): readonly Timing[] {
  return [1e3, 1e9].map((bytes) => ({ bytes, microseconds: fixed + bytes / bytesPerMicrosecond }));
}

/** Figures of the order of an H200's. */
const machine: MachineProfile = {
  version: 1,
  machine: "round figures",
  products: [
    {
      dtype: "bfloat16",
      m: [512, 16_384],
      n: [1024, 8192],
      k: [512, 16_384],
      teraflops: [250, 500, 400, 650, 450, 700, 600, 720],
    },
  ],
  memory: rate(3, 3.5e6),
  localCopies: rate(3, 1.7e6),
  peerCopies: rate(8, 3.6e5),
  kernelCopies: rate(4, 2.8e5),
  transfers: [
    { type: "Allgather", ranks: 4, timings: rate(25, 3.3e5) },
    { type: "group", ranks: 2, timings: rate(25, 2e5) },
  ],
  costs: { run: 10, launch: 2, event: 1, join: 0, signal: 3, issue: 3, underTransfer: 1.2 },
};

function allgatherMatmul(devices: number, m: number, n: number, k: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, m / devices, k], "bfloat16");
  const w = f.input([n, k], "bfloat16");
  const c = linear(a, w);
  f.output(c);
  for (const tensor of [a, w, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

describe("chooseSchedule", () => {
  it("overlaps where communication can hide, and is never slower than serial", () => {
    const { chosen, considered, reason } = chooseSchedule(allgatherMatmul(4, 32_768, 8192, 16_384), {
      devices: 4,
      profile: machine,
    });
    expect(chosen.lowering.communicatorBackend).toBe("cuda");
    const serial = considered.find(({ candidate }) => candidate === serialCandidate);
    const product = (2 * 32_768 * 8192 * 16_384) / 720e9;
    expect(serial?.milliseconds).toBeGreaterThan(product + 1);
    expect(considered[0]?.milliseconds).toBeLessThan(product * 1.05);
    expect(reason).toContain(chosen.name);
    expect(reason).toContain("serial ");
    expect(reason.split("\n")).toHaveLength(1);
  });

  it("stays serial where signals and waits cost more than they hide", () => {
    const slow = { ...machine, costs: { ...machine.costs, signal: 5000 } };
    expect(chooseSchedule(allgatherMatmul(4, 2048, 1024, 1024), { devices: 4, profile: slow }).chosen).toBe(
      serialCandidate,
    );
  });

  it("merges products where small ones are slow, and does not where all have one rate", () => {
    const [grid] = machine.products;
    if (grid === undefined) throw new Error("no grid");
    const withRates = (teraflops: readonly number[]): MachineProfile => ({
      ...machine,
      products: [{ ...grid, teraflops }],
      peerCopies: rate(1, 4e6),
    });
    const chosenWith = (teraflops: readonly number[]) =>
      chooseSchedule(allgatherMatmul(4, 16_384, 2048, 16_384), { devices: 4, profile: withRates(teraflops) }).chosen;
    expect(chosenWith([50, 50, 50, 50, 700, 700, 700, 700]).schedule.mergeProducts).toBeDefined();
    expect(chosenWith([700, 700, 700, 700, 700, 700, 700, 700]).schedule.mergeProducts).toBeUndefined();
  });

  it("keeps to what the user has set", () => {
    const { considered } = chooseSchedule(allgatherMatmul(4, 2048, 1024, 1024), {
      devices: 4,
      profile: machine,
      lowering: { communicatorBackend: "nccl" },
    });
    const backends = considered.map(({ candidate }) => candidate.lowering.communicatorBackend);
    expect(new Set(backends)).toEqual(new Set(["nccl"]));
  });

  it("says what lowering says where nothing applies", () => {
    const f = new Fusion();
    const a = f.input([4, 8], "float");
    const c = linear(a, f.input([8, 8], "float"));
    f.output(c);
    a.setDeviceMesh(DeviceMesh.range(4));
    expect(() => chooseSchedule(f, { devices: 4, profile: machine })).toThrow(DiagnosticError);
  });

  it("chooses what has the oracle's result", async () => {
    const fusion = allgatherMatmul(2, 64, 8, 16);
    const { considered } = chooseSchedule(fusion, { devices: 2, profile: machine });
    expect(considered.length).toBeGreaterThan(8);
    // One of each: the forms, and every rewrite alone and together.
    for (const { candidate } of considered.filter((_, i) => i % 5 === 0)) {
      const { lowering, copyLane, schedule } = candidate;
      await expectOracle(fusion, { devices: 2, ...lowering, streams: candidateStreams, copyLane, schedule });
    }
  }, 30_000);
});
