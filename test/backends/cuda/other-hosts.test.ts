/** Which commands reach memory of other hosts, and what all ranks say when one does. */
import { describe, expect, it } from "vitest";
import { firstCrossing, requireReachable } from "../../../src/backends/cuda/cuda-backend.ts";
import type { DeviceOps } from "../../../src/backends/cuda/ops/device-op.ts";
import { deviceOps } from "../../../src/backends/cuda/ops/device-ops.ts";
import { programNotes } from "../../../src/backends/cuda/ops/list-notes.ts";
import type { Program } from "../../../src/commands/program.ts";
import { compile, type CompileOptions } from "../../../src/compile/compile.ts";
import type { Fusion } from "../../../src/ir/api/fusion.ts";
import { ring as ringOf, total as totalOf } from "../../support/peer-fusions.ts";

const devices = 4;
const target = { capability: 90, multiprocessors: 132 };

const ring = (): Fusion => ringOf(devices, [8, 16, 4], "float");
const total = (): Fusion => totalOf(devices, 64);

const cases: Readonly<Record<string, readonly [() => Fusion, Omit<CompileOptions, "devices">]>> = {
  get: [ring, { backend: "cuda", protocol: "get" }],
  put: [ring, { backend: "cuda", protocol: "put" }],
  sum: [total, { backend: "cuda" }],
  nccl: [ring, { backend: "nccl" }],
  hosts: [ring, { backend: "cuda", devicesPerHost: 2 }],
};

function programOf(name: string): Program {
  const [build, options] = cases[name] ?? [];
  if (build === undefined) throw new Error(`no case ${name}`);
  return compile(build(), { on: "cuda", devices, ...options }).program;
}

/** The ranks whose memory a list names, wherever in its operations. */
function namedRanks({ ops }: DeviceOps): ReadonlySet<number> {
  const places = [...JSON.stringify(ops).matchAll(/"space":"(?:symmetric|word)","rank":(\d)/g)];
  return new Set(places.map(([, rank]) => Number(rank)));
}

const placements = [
  [0, 0, 0, 0],
  [0, 0, 1, 1],
  [0, 1, 2, 3],
];

describe.each(Object.keys(cases))("%s", (name) => {
  const program = programOf(name);

  it.each(placements)("crosses hosts where a list names memory of another: %j", (...hosts) => {
    for (const { rank } of program.ranks) {
      for (const joined of [true, false]) {
        const list = deviceOps(program, rank, target, { joined });
        const others = [...namedRanks(list)].filter((peer) => hosts[peer] !== hosts[rank]);
        const crossing = firstCrossing(list, hosts);
        expect(crossing !== null).toBe(others.length > 0);
        if (crossing !== null) expect(others).toContain(crossing.peer);
      }
    }
  });
});

const twoHosts = { hosts: [0, 0, 1, 1], hostNames: ["a", "b"] };

/** What every rank throws; null for nothing. */
async function refusals(program: Program, { hosts, hostNames } = twoHosts): Promise<readonly (string | null)[]> {
  const given: Uint8Array[] = [];
  let complete = (): void => {};
  const all = new Promise<void>((resolve) => (complete = resolve));
  return Promise.all(
    program.ranks.map(async ({ rank }) => {
      const ops = deviceOps(program, rank, target);
      const unjoined = (): DeviceOps => deviceOps(program, rank, target, { joined: false });
      const allGather = async (bytes: Uint8Array): Promise<readonly Uint8Array[]> => {
        given[rank] = bytes;
        if (Object.keys(given).length === program.ranks.length) complete();
        await all;
        return given;
      };
      try {
        await requireReachable(
          { ops, unjoined, notes: programNotes(program, rank) },
          { rank, hosts, hostNames, allGather },
        );
        return null;
      } catch (error) {
        return String(error);
      }
    }),
  );
}

describe("a program that reaches other hosts", () => {
  it("is refused with the same command on all ranks", async () => {
    const all = await refusals(programOf("get"));
    expect(new Set(all).size).toBe(1);
    expect(all[0]).toMatch(/gpu-unsupported.*another host\n {2}at: rank 0, stream \d+: command \d+, signal /);
    expect(all[0]).toMatch(/found: rank 0 on host a (signals|reaches the memory of) rank [23] on host b\n/);
    expect(all[0]).toContain("--devices-per-host 2");
  });

  it("runs where it is lowered for the hosts, or where all ranks share one", async () => {
    expect(await refusals(programOf("hosts"))).toEqual(Array(4).fill(null));
    expect(await refusals(programOf("nccl"))).toEqual(Array(4).fill(null));
    const together = { hosts: [0, 0, 0, 0], hostNames: ["a"] };
    expect(await refusals(programOf("get"), together)).toEqual(Array(4).fill(null));
  });
});
