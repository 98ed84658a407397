/** Transfers between hosts: their times add up from the profile's network by hand, and network interfaces are shared. */
import { compile, DeviceMesh, Fusion, type MachineProfile, set, simulate } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { type BetweenHosts, networkOf } from "../../src/simulate/machine-profile.ts";
import { roundProfile } from "./profile.ts";

/** Within a host 20 us and 1 us per 10 bytes; between hosts 30 us and 1 us per byte. */
const machine: MachineProfile = {
  ...roundProfile,
  transfers: [
    { type: "Allgather", ranks: 2, timings: line(20, 0.1) },
    { type: "group", ranks: 2, timings: line(7, 0.1) },
  ],
};
const network: BetweenHosts = {
  nics: 2,
  transfers: [
    { type: "Allgather", ranks: 2, timings: line(30, 1) },
    { type: "group", ranks: 2, timings: line(12, 1) },
  ],
};

function line(latency: number, perByte: number): MachineProfile["memory"] {
  return [
    { bytes: 0, microseconds: latency },
    { bytes: 1000, microseconds: latency + 1000 * perByte },
  ];
}

/** 8 floats on each of 4 devices, on two hosts, gathered along one type or, on a mesh of one dimension, over all. */
function gathered(type: "DIDx" | "DIDy" | "all"): Fusion {
  const f = new Fusion();
  const x = f.input([32]);
  const y = set(x);
  f.output(y);
  const mesh = type === "all" ? DeviceMesh.range(4) : DeviceMesh.ofShape([2, 2]);
  for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
  const share = x.outerSplit(0, type === "all" ? 4 : 2);
  share.parallelize(type === "all" ? "DIDx" : type);
  return f;
}

/** Microseconds without the fixed cost of a run. */
function time(fusion: Fusion, betweenHosts: BetweenHosts | undefined): number {
  const profile = betweenHosts === undefined ? machine : { ...machine, betweenHosts };
  const { program } = compile(fusion, { devices: 4, devicesPerHost: 2, streams: 1 });
  const { milliseconds } = simulate(program, profile, { graph: true });
  return milliseconds * 1000 - machine.costs.run - 2 * machine.costs.event;
}

describe("a collective", () => {
  it("within a host does not use the network", () => {
    expect(time(gathered("DIDx"), network)).toBeCloseTo(20 + 0.1 * 128);
  });

  it("between hosts has the network's time, and uses the interface of its device", () => {
    expect(time(gathered("DIDy"), network)).toBeCloseTo(30 + 128);
  });

  it("waits for others that use the same interface, but for its latency", () => {
    expect(time(gathered("DIDy"), { ...network, nics: 1 })).toBeCloseTo(30 + 2 * 128);
  });

  it("over all devices of all hosts sends a part by each device, and takes at least as long as within a host", () => {
    expect(time(gathered("all"), network)).toBeCloseTo(30 + 128 / 2);
    const fast = { ...network, transfers: [{ type: "Allgather", ranks: 2, timings: line(1, 0.001) }] } as const;
    expect(time(gathered("all"), fast)).toBeCloseTo(20 + 0.1 * 128);
  });

  it("is timed as within a host, and says so, if the profile has no network", () => {
    expect(time(gathered("DIDy"), undefined)).toBeCloseTo(20 + 0.1 * 128);
    const { program } = compile(gathered("DIDy"), { devices: 4, devicesPerHost: 2 });
    const { assumptions } = simulate(program, machine, { graph: true });
    expect(assumptions).toEqual([
      "transfers between hosts are timed as within a host: the profile has no betweenHosts",
    ]);
  });
});

it("of sends and receives, those to other hosts use the network", () => {
  const f = new Fusion();
  const x = f.input([4, 8]);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.axis(0).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  const { program } = compile(f, { devices: 4, devicesPerHost: 2, streams: 1 });
  const groups = simulate(program, { ...machine, betweenHosts: network }, { graph: true }).trace.flatMap(
    ({ rank, command, start, end }) =>
      program.ranks[rank]?.commands[command]?.kind === "transfer" ? [Math.round(1000 * (end - start) * 10) / 10] : [],
  );
  // 32 bytes in each direction. In the second iteration, ranks 1 and 3 receive from another host; ranks 0 and 2 send to one.
  expect(new Set(groups)).toEqual(new Set([12 + 32, 12 + 64]));
});

it("more hosts take more steps, by trees", () => {
  const eight = new Fusion();
  const x = eight.input([32]);
  const y = set(x);
  eight.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.ofShape([8, 1]));
  x.outerSplit(0, 8).parallelize("DIDy");
  const { program } = compile(eight, { devices: 8, devicesPerHost: 1 });
  const { milliseconds, assumptions } = simulate(program, { ...machine, betweenHosts: network }, { graph: true });
  expect(1000 * milliseconds - machine.costs.run - 2 * machine.costs.event).toBeCloseTo(3 * 30 + 1.75 * 128);
  expect(assumptions).toEqual([
    "Allgather over 8 hosts is timed as Allgather over 2 hosts, with 3 times its latency and 1.75 times its time per byte",
  ]);
});

it("a network by its figures moves an interface's part of the bytes at its rate", () => {
  const { nics, transfers } = networkOf({ rate: 50, latency: 25, nics: 8 });
  expect(nics).toBe(8);
  const times = transfers.map(({ type, timings }) => [type, timings.at(-1)?.microseconds]);
  // 1 MB: 20 us at 50 GB/s, of which an interface sends half in a gather.
  expect(Object.fromEntries(times)).toMatchObject({ Allgather: 35, Allreduce: 45, group: 35 });
});
