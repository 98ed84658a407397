/** Programs of several regions: which they are, and the schedule that is chosen for each. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, linear, type MachineProfile, set } from "@braid-compiler/braid";
import { wholeBlock } from "../../../bench/compare/block/block-fusion.ts";
import { isFusion } from "../../../src/ir/api/fusion.ts";
import { parseProfile } from "../../../src/simulate/parse-profile.ts";
import { choose } from "../../../src/tune/choose/choose.ts";
import { considerSchedules } from "../../../src/tune/choose/consider.ts";
import { decide } from "../../../src/tune/choose/decide.ts";
import { compile } from "../../../src/compile/compile.ts";
import { simulate } from "../../../src/simulate/simulate.ts";
import { candidateStreams, serial } from "../../../src/tune/choose/candidates.ts";
import { findRegions } from "../../../src/tune/regions/split-regions.ts";
import { loadExample } from "../../support/example-program.ts";
import { shardedModels } from "../../support/sharded-models.ts";
import { gatherAndScatter, pairs } from "./pairs.ts";

const profile = profileOf("2xH200");

function profileOf(name: string): MachineProfile {
  return parseProfile(readFileSync(new URL(`../../../profiles/${name}.json`, import.meta.url), "utf8"), name);
}

function kindsOf(fusion: Fusion): readonly string[] {
  const found = findRegions(fusion, {});
  return (found?.regions ?? []).map(({ ops }) => ops.map(({ kind }) => kind).join(" "));
}

describe("regions", () => {
  it("are loops and communications with their GEMMs", () => {
    expect(kindsOf(pairs(2, 8, [4, 6, 8], "float"))).toEqual(["Linear Set", "Linear Set"]);
    expect(kindsOf(gatherAndScatter(2, 8, 4))).toEqual(["Linear Unary", "Matmul Reduction"]);
  });

  it("are equal if they differ in numbers and names alone", () => {
    const found = findRegions(pairs(2, 8, [4, 4, 4, 6], "float"), {});
    const keys = found?.keys ?? [];
    expect(keys).toHaveLength(3);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("of the examples", async () => {
    const counts = {
      "allgather-matmul": 1,
      "matmul-allreduce": 1,
      "matmul-reduce-scatter": 1,
      mlp: 1,
      pipeline: 1,
      "nvfuser/matmul-reduce-scatter-p2p": 1,
      "transformer/mlp": 3,
      "transformer/attention": 3,
      "transformer/data-parallel": 6,
    };
    const found: Record<string, number | undefined> = {};
    for (const example of Object.keys(counts)) {
      const fusion = (await loadExample(`${example}.ts`)).build({ devices: 4 });
      found[example] = isFusion(fusion) ? findRegions(fusion, {})?.regions.length : undefined;
    }
    expect(found).toEqual(counts);
  });

  it.each([false, true])("read what a loop has gathered, which is an op of the program: %s", (isOp) => {
    const f = new Fusion();
    const mesh = DeviceMesh.range(2);
    const [x, w, u] = [f.input([8, 4], "float"), f.input([6, 4], "float"), f.input([8, 4], "float")];
    const gathered = isOp ? set(x) : x;
    const [y, z] = [linear(gathered, w), linear(x, u)];
    for (const tensor of [x, w, u, gathered, y, z]) tensor.setDeviceMesh(mesh);
    for (const tensor of [x, u]) tensor.outerSplit(0, 2).parallelize("DIDx");
    for (const tensor of isOp ? [gathered, y] : [y]) tensor.outerSplit(0, 4).parallelize("Stream");
    z.outerSplit(1, 2).parallelize("DIDx");
    f.output(y);
    f.output(z);
    const whole = set(z);
    whole.setDeviceMesh(mesh);
    f.output(whole);
    const regions = findRegions(f, {})?.regions ?? [];
    expect(regions.map(({ ops }) => ops.map(({ kind }) => kind).join(" "))).toEqual(["Set Linear", "Linear Set"]);
    expect(regions[1]?.inputs).toContain(regions[0]?.ops[0]?.output);
  });

  it("of a backward pass read what a forward pass gathers for a loop over the devices", () => {
    const { build } = shardedModels["sequences, backward"];
    const regions = findRegions(build({ devices: 2, rows: 4, hidden: 4, dtype: "float" }), {})?.regions ?? [];
    expect(regions).toHaveLength(4);
    const gathered = regions[0]?.ops.findLast(({ kind }) => kind === "Set")?.output;
    expect(regions.map(({ inputs }) => inputs.some((id) => id === gathered))).toEqual([false, false, false, true]);
  });

  it("are not split where that would send a tensor twice", () => {
    const f = new Fusion();
    const mesh = DeviceMesh.range(2);
    const x = f.input([2, 4, 8], "float");
    x.setDeviceMesh(mesh);
    x.axis(0).parallelize("DIDx");
    const whole = set(x);
    const [w, v] = [f.input([8, 8], "float"), f.input([8, 8], "float")];
    const [a, b] = [linear(whole, w), linear(whole, v)];
    for (const tensor of [whole, w, v, a, b]) tensor.setDeviceMesh(mesh);
    for (const tensor of [a, b]) f.output(tensor);
    expect(kindsOf(f)).toEqual(["Set Linear Linear"]);
  });

  it("of a block are none for the sum of a norm's gradient alone", () => {
    const problem = { primitive: "block", model: "llama-3-8b", cut: "tp-sp", dtype: "bfloat16" } as const;
    const { fusion } = wholeBlock({ ...problem, pass: "forward+backward", devices: 2 }, { chunks: 1, all: false });
    for (const { ops } of findRegions(fusion, {})?.regions ?? []) {
      expect(ops.some(({ kind }) => kind === "Linear" || kind === "Matmul")).toBe(true);
    }
  });

  it("of a block in chunks gather each tensor of the forward pass once", () => {
    const problem = {
      primitive: "block",
      model: "llama-3-8b",
      cut: "tp-sp",
      pass: "forward+backward",
      dtype: "bfloat16",
    } as const;
    const { fusion } = wholeBlock({ ...problem, devices: 2 }, { chunks: 4, all: true });
    const gathers = (findRegions(fusion, {})?.regions ?? []).map(
      ({ ops }) => ops.filter(({ kind }) => kind === "Set").length,
    );
    expect(gathers).toEqual([1, 1, 0, 0, 0, 0]);
  });
});

describe("a program of many layers", () => {
  it("is predicted from fewer of them, and compiled once", () => {
    const fusion = pairs(2, 4096, Array<number>(16).fill(4096), "bfloat16");
    const options = { devices: 2, verify: "off" } as const;
    const { considered, milliseconds, compilation, chosen } = choose(fusion, options, profile);
    expect(chosen.name).toBe("by region");
    expect(milliseconds).toBe(simulate(compilation.program, profile, { graph: true }).milliseconds);
    const { lowering, schedule } = serial;
    const whole = compile(fusion, { ...options, ...lowering, schedule, streams: candidateStreams });
    const { milliseconds: ofSerial } = simulate(whole.program, profile, { graph: true });
    const predicted = considered.find(({ candidate }) => candidate.name === "serial")?.milliseconds ?? 0;
    expect(predicted / ofSerial).toBeCloseTo(1, 9);
    const times = considered.map((each) => each.milliseconds);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times).toContain(milliseconds);
  });
});

describe("choose", () => {
  it("chooses equal regions once, and says of each distinct one what won", () => {
    const fusion = pairs(2, 4096, [4096, 4096, 4096, 16, 16], "bfloat16");
    const { regions, reason, compilation, milliseconds, considered } = choose(fusion, { devices: 2 }, profile);
    expect(regions.map(({ count }) => count)).toEqual([2, 1, 1]);
    expect(regions.map(({ chosen }) => chosen.lowering.backend)).toEqual(["cuda", "cuda", "nccl"]);
    expect(regions[0]?.ops).toBe("T2 = linear(T0, T1) .. T3 = set(T2)");
    const [first = "", ...others] = reason.split("\n");
    expect(first).toMatch(/^by region: [\d.]+ ms, 4 regions of which 3 are distinct; serial [\d.]+ ms/);
    expect(others.map((line) => line.trim().split(": ", 2).join(": "))).toEqual(
      regions.map(({ count, ops, chosen }) => `${count} x ${ops}: ${chosen.name}`),
    );
    expect(compilation.report.ok).toBe(true);
    const serial = considered.find(({ candidate }) => candidate.name === "serial");
    expect(milliseconds).toBeLessThan(serial?.milliseconds ?? 0);
  });

  it("stays serial as a whole where no region gains", () => {
    const { chosen, regions, compilation } = choose(pairs(2, 16, [16, 16, 16], "bfloat16"), { devices: 2 }, profile);
    expect(chosen.name).toBe("serial");
    expect(regions.map((region) => region.chosen.name)).toEqual(["serial"]);
    expect(compilation.options.regions).toBeUndefined();
  });

  it("lowers neighbouring serial regions as one", () => {
    const fusion = pairs(2, 4096, [4096, 4096, 16, 16, 16], "bfloat16");
    const { chosen, regions, compilation } = choose(fusion, { devices: 2 }, profile);
    expect(chosen.name).toBe("by region");
    expect(regions.map(({ count, chosen: { name: own } }) => [count, own === "serial"])).toEqual([
      [1, false],
      [1, false],
      [2, true],
    ]);
    expect(compilation.options.regions).toHaveLength(3);
  });

  it("leaves chunks that exchange nothing whole", () => {
    const f = new Fusion();
    const mesh = DeviceMesh.range(2);
    const [x, w] = [f.input([4096, 4096], "bfloat16"), f.input([4096, 4096], "bfloat16")];
    const y = linear(x, w);
    for (const tensor of [x, w, y]) tensor.setDeviceMesh(mesh);
    y.outerSplit(0, 4).parallelize("Stream");
    f.output(y);
    const { chosen, considered } = choose(f, { devices: 2 }, profile);
    expect(chosen.name).toBe("serial");
    expect(considered).toHaveLength(1);
  });

  it("chooses for a program of one region as without regions", () => {
    const fusion = pairs(2, 2048, [1024, 1024], "bfloat16");
    const { regions, reason, chosen } = choose(fusion, { devices: 2, verify: "off" }, profile);
    const whole = decide(considerSchedules(fusion, { devices: 2 }, profile));
    expect(regions).toEqual([]);
    expect([reason, chosen]).toEqual([whole.reason, whole.picked.candidate]);
  });
});
