/**
 * The models of memory and communicators: programs with another verdict under each, and the machine, which agrees. A
 * counterexample changes the outputs; a program that verifies has the same outputs under every order that was tried.
 */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type HostProgram, link, type Program, record, verify } from "@braid-compiler/braid";
import { communicatorTeams } from "../../../src/backends/cuda/nccl/communicators.ts";
import { type MemoryModel, memoryModels } from "../../../src/compile/memory-models.ts";
import { createCpuBackend } from "../../../src/cpu.ts";
import { at } from "../../../src/support/invariant.ts";
import { compareProgram } from "../mutants/compare.ts";
import { outputsOf } from "../mutants/replay.ts";
import {
  freedByReader,
  freedFromElsewhere,
  groupAndSingle,
  groupMeetsSingle,
  groupThenAllreduce,
  relay,
  ring,
  sliceOutlives,
  waitedForElsewhere,
} from "./programs.ts";

const { braid, nvfuser } = memoryModels;

function programOf(devices: number, hostOf: (rank: number) => HostProgram, model: Partial<MemoryModel>): Program {
  return link(Array.from({ length: devices }, (_, rank) => record(hostOf(rank), { rank, devices, ...model })));
}

interface Verdicts {
  readonly name: string;
  readonly devices: number;
  readonly hostOf: (rank: number) => HostProgram;
  /** The codes of the findings under each model. */
  readonly braid: readonly string[];
  readonly nvfuser: readonly string[];
}

const cases: readonly Verdicts[] = [
  {
    name: "a tensor is freed by the stream that reads it, not the one that allocated it",
    devices: 1,
    hostOf: () => freedByReader(false),
    braid: [],
    nvfuser: ["freed-in-use"],
  },
  {
    name: "the same, and the stream that allocated it waits for the reader",
    devices: 1,
    hostOf: () => freedByReader(true),
    braid: [],
    nvfuser: [],
  },
  {
    name: "a tensor is freed while another stream is current than the one that allocated and reads it",
    devices: 1,
    hostOf: () => freedFromElsewhere(),
    braid: ["freed-in-use", "memory-shared", "used-before-alloc"],
    nvfuser: [],
  },
  {
    name: "another stream than the allocating one waits for the transfer of a deallocated tensor",
    devices: 2,
    hostOf: () => waitedForElsewhere(),
    braid: [],
    nvfuser: ["freed-in-use"],
  },
  {
    name: "a ring of single sends and receives",
    devices: 3,
    hostOf: () => ring(3, false),
    braid: ["deadlock"],
    nvfuser: ["needs-concurrency"],
  },
  { name: "a ring of groups", devices: 3, hostOf: () => ring(3, true), braid: [], nvfuser: [] },
  {
    name: "a single send of what a single receive without a Wait brings",
    devices: 3,
    hostOf: (rank) => relay(rank, false),
    braid: [],
    nvfuser: ["data-race"],
  },
  { name: "the same after a Wait", devices: 3, hostOf: (rank) => relay(rank, true), braid: [], nvfuser: [] },
  {
    name: "a group and an Allreduce of what it brings, without a Wait",
    devices: 2,
    hostOf: () => groupThenAllreduce(),
    braid: ["data-race"],
    nvfuser: [],
  },
];

describe.each(cases)("$name", ({ devices, hostOf, ...verdicts }) => {
  it.each(["braid", "nvfuser"] as const)("has the findings of %s, and the machine agrees", async (model) => {
    const program = programOf(devices, hostOf, memoryModels[model]);
    const { ok, findings } = verify(program, { notes: false });
    expect([...new Set(findings.map(({ code }) => code))].toSorted()).toEqual(verdicts[model]);
    // A warning, because NVIDIA's GPUs have several queues.
    expect(ok).toBe(["", "needs-concurrency"].includes(verdicts[model].join(" ")));
    expect(compareProgram(program)).toEqual({
      outcome: findings.length === 0 ? "right" : "wrong",
      disagreement: null,
    });
    const right = await outputsOf(
      programOf(devices, hostOf, memoryModels[model === "braid" ? "nvfuser" : "braid"]),
      null,
    );
    const orders = findings.flatMap(({ interleaving }) => interleaving ?? []);
    if (ok) {
      for (const seed of [1, 2, 3, 4]) orders.push(`seed:${seed}`);
      for (const order of orders) expect(await outputsOf(program, order)).toBe(await outputsOf(program, null));
    } else if (verdicts[model][0] === "deadlock") {
      expect(await outputsOf(program, null)).toBe("stopped: stuck");
    } else {
      const replayed = await Promise.all(orders.map((order) => outputsOf(program, order)));
      expect(replayed.some((outputs) => outputs !== right)).toBe(true);
    }
  });
});

describe("memory of one rank", () => {
  const placesOf = ({ buffers }: Program): readonly number[] =>
    buffers.filter(({ role }) => role === "temporary").map(({ offset }) => offset);

  it("is used again on the stream that allocated it, or that freed it", () => {
    const reader = {
      braid: programOf(1, () => freedByReader(true), braid),
      nvfuser: programOf(1, () => freedByReader(true), nvfuser),
    };
    expect(new Set(placesOf(reader.nvfuser)).size).toBe(1);
    expect(new Set(placesOf(reader.braid)).size).toBe(2);
    expect(new Set(placesOf(programOf(1, () => freedFromElsewhere(), nvfuser))).size).toBe(2);
    expect(new Set(placesOf(programOf(1, () => freedFromElsewhere(), braid))).size).toBe(1);
  });

  it("lives as long as its slices, or ends before them", async () => {
    expect(() => programOf(1, sliceOutlives, braid)).toThrow("T3 is a slice of memory that was deallocated");
    const program = programOf(1, sliceOutlives, nvfuser);
    expect(verify(program)).toMatchObject({ ok: true, findings: [] });
    const { commands } = at(program.ranks, 0);
    expect(commands.map(({ kind }) => kind)).toEqual(["alloc", "launch", "launch", "free"]);
    expect(await outputsOf(program, "seed:1")).toBe(await outputsOf(program, null));
  });
});

describe("single sends and groups", () => {
  it("have communicators of the ranks that use them, which NCCL opens", () => {
    const pairs = ["0 1", "0 2", "1 2"].map((pair) => ({
      name: `NCCL pair (${pair})`,
      ranks: pair.split(" ").map(Number),
    }));
    expect(communicatorTeams(programOf(3, () => ring(3, false), nvfuser))).toEqual(pairs);
    const all = [{ name: "NCCL (0 1)", ranks: [0, 1] }];
    expect(communicatorTeams(programOf(2, () => groupThenAllreduce(), nvfuser))).toEqual(all);
    expect(communicatorTeams(programOf(2, () => groupThenAllreduce(), braid))).toEqual([
      ...all,
      { name: "NCCL world", ranks: [0, 1] },
    ]);
  });

  it("match in order of posting on one communicator, each with its kind on pairs", async () => {
    const [team, pair] = [programOf(2, groupAndSingle, braid), programOf(2, groupAndSingle, nvfuser)];
    expect(verify(team)).toMatchObject({ ok: true, findings: [] });
    expect(verify(pair).findings.map(({ code }) => code)).toEqual(["deadlock"]);
    expect(await outputsOf(team, "seed:1")).toBe(await outputsOf(team, null));
    expect(await outputsOf(pair, null)).toBe("stopped: stuck");
  });

  it("of two kinds do not meet on pairs", () => {
    expect(verify(programOf(2, groupMeetsSingle, braid))).toMatchObject({ ok: true, findings: [] });
    expect(() => programOf(2, groupMeetsSingle, nvfuser)).toThrow(DiagnosticError);
    expect(() => programOf(2, groupMeetsSingle, nvfuser)).toThrow(/transfer-mismatch[^]*NCCL pair \(0 1\)/);
  });

  it("with one queue for each rank, a ring on pairs is stuck, as its warning says", async () => {
    const program = programOf(3, () => ring(3, false), nvfuser);
    const { findings } = verify(program);
    expect(findings.map(({ severity }) => severity)).toEqual(["warning"]);
    expect(findings[0]?.help).toContain("CUDA_DEVICE_MAX_CONNECTIONS");
    const group = await createCpuBackend({ queues: "ranks" }).open({ world: 3, localRanks: [0, 1, 2] });
    const prepared = await group.prepare(program);
    await expect(prepared.execute()).rejects.toThrow(/stuck/);
    await group.close();
  });
});
