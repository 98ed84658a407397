/**
 * Device operations as plain data: golden files of their lists, no dependence on anything but the Program, and the same
 * work with and without joined commands.
 */
import path from "node:path";
import { lower, parse, print } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { Address } from "../../../src/backends/cuda/ops/address.ts";
import type { DeviceOps } from "../../../src/backends/cuda/ops/device-op.ts";
import { deviceOps } from "../../../src/backends/cuda/ops/device-ops.ts";
import type { Program } from "../../../src/commands/program.ts";
import { compile, type CompileOptions } from "../../../src/compile/compile.ts";
import { DeviceMesh } from "../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { groupedMatmul, scaledLinear, set } from "../../../src/ir/api/ops.ts";
import { at } from "../../../src/support/invariant.ts";
import { attentionFusion } from "../../gpu/attention-cases.ts";
import { diagnosticOf } from "../../ir/expect-diagnostic.ts";
import { ring as ringOf, total as totalOf } from "../../support/peer-fusions.ts";

const devices = 2;
const target = { capability: 90, multiprocessors: 132 };

const ring = (): Fusion => ringOf(devices, [64, 256, 128], "bfloat16");
const total = (): Fusion => totalOf(devices, 512);

const cases: Readonly<Record<string, readonly [() => Fusion, Omit<CompileOptions, "devices">]>> = {
  "ring-get": [ring, { backend: "cuda", protocol: "get", schedule: { inPlace: true } }],
  "ring-put": [ring, { backend: "cuda", protocol: "put" }],
  "ring-margin": [ring, { backend: "cuda", protocol: "get", schedule: { smMargin: 8 } }],
  "ring-nccl": [ring, { backend: "nccl" }],
  "sum-over-links": [total, { backend: "cuda" }],
  attention: [
    () => attentionFusion({ name: "", q: [2, 16, 8], k: [2, 16, 8], causal: "topLeft" }, "half"),
    { attention: "fused" },
  ],
};

function programOf(name: string): Program {
  const [build, options] = cases[name] ?? [];
  if (build === undefined) throw new Error(`no case ${name}`);
  return compile(build(), { on: "cuda", devices: name === "attention" ? 1 : devices, ...options }).program;
}

/** A line for each table entry and operation. Kernels' texts have golden files of their own. */
function text({ rank, world, streams, memory, kernels, ops, ...tables }: DeviceOps): string {
  const rows = [{ rank, world, kernels: kernels.length, ...tables }, ...streams, memory];
  return [...rows.map((row) => JSON.stringify(row)), ...ops.map((op) => JSON.stringify(op))].join("\n") + "\n";
}

describe.each(Object.keys(cases))("%s", (name) => {
  const program = programOf(name);
  const lists = program.ranks.map(({ rank }) => deviceOps(program, rank, target));

  it("has the operations of its golden file", async () => {
    const file = path.join(import.meta.dirname, "golden/ops", `${name}.txt`);
    await expect(lists.map(text).join("\n")).toMatchFileSnapshot(file);
  });

  it("is plain data, the same every time", () => {
    expect(JSON.parse(JSON.stringify(lists))).toEqual(lists);
    expect(program.ranks.map(({ rank }) => deviceOps(program, rank, target))).toEqual(lists);
  });

  it("has the same operations without joined commands, but for batches and the kernels that took them in", () => {
    for (const list of lists) {
      const alone = deviceOps(program, list.rank, target, { joined: false });
      expect(alone.memory).toEqual(list.memory);
      expect(alone.ops.filter(isSingle)).toEqual(list.ops.filter(isSingle));
      expect(alone.ops.filter(({ kind }) => kind === "launch")).toHaveLength(
        list.ops.filter(({ kind }) => kind === "launch").length,
      );
    }
  });

  it("names memory that exists", () => {
    for (const list of lists) for (const address of addressesIn(list.ops)) expect(isKnown(address, list)).toBe(true);
  });
});

it("leaves waits to memory operations where kernels that wait could hold more than half of the GPU", () => {
  const program = programOf("sum-over-links");
  const kinds = (multiprocessors: number) =>
    deviceOps(program, 0, { ...target, multiprocessors }).ops.map(({ kind }) => kind);
  expect(kinds(132)).not.toContain("batch");
  expect(kinds(1)).toContain("batch");
});

it("refuses scaled matmuls before Ada, with what to write instead", () => {
  const f = new Fusion();
  const [x, w] = [f.input([16, 32], "float8_e4m3fn"), f.input([16, 32], "float8_e5m2")];
  f.output(scaledLinear(x, w, f.input([16], "float"), f.input([16], "float")));
  const { program } = compile(f, { devices: 1, on: "cuda" });
  expect(deviceOps(program, 0, { ...target, capability: 89 }).gemms).toHaveLength(1);
  const found = diagnosticOf(() => deviceOps(program, 0, { ...target, capability: 86 }));
  expect(found).toMatchObject({ code: "gpu-unsupported", found: "compute capability 8.6" });
  expect(found.help).toContain('linear(cast(x, "bfloat16"), cast(weight, "bfloat16"))');
  expect(deviceOps(compile(ring(), { devices, on: "cuda" }).program, 0, { ...target, capability: 80 }).ops).not.toEqual(
    [],
  );
});

it("multiplies each source's rows of experts on tensor cores, wherever their numbers begin", () => {
  const f = new Fusion();
  const [x, used] = [f.input([4, 2, 128, 64], "bfloat16"), f.input([4, 2, 1], "int64")];
  const w = f.input([4, 1, 1, 64, 128], "bfloat16");
  const [rows, counts] = [set(x), set(used)];
  const y = set(groupedMatmul(rows, w, counts));
  f.output(y);
  for (const tensor of [x, used, w, rows, counts, y]) tensor.setDeviceMesh(DeviceMesh.range(2));
  for (const tensor of [x, used, y]) tensor.axis(1).parallelize("DIDx");
  for (const tensor of [w, rows, counts]) tensor.outerSplit(0, 2).parallelize("DIDx");
  const { program } = compile(f, { devices: 2, on: "cuda", backend: "cuda", protocol: "put", deviceLoops: true });
  const { kernels, ops } = deviceOps(program, 0, target);
  const launched = ops.flatMap((op) => (op.kind === "launch" ? [at(kernels, op.kernel)] : []));
  expect(launched.filter((text) => text.includes("wgmma"))).toHaveLength(2);
});

it("lets cuBLASLt keep sums of 8-bit products in fewer bits where that is asked for, also when devices gather", () => {
  const layoutsOf = (fastAccumulation: boolean) => {
    const f = new Fusion();
    const [x, w] = [f.input([2, 16, 32], "float8_e4m3fn"), f.input([16, 32], "float8_e5m2")];
    const scales = [f.input([2, 16], "float"), f.input([16], "float")] as const;
    const [whole, ofRows] = [set(x), set(scales[0])];
    const y = scaledLinear(whole, w, ofRows, scales[1], { fastAccumulation });
    f.output(y);
    for (const each of [x, w, ...scales, whole, ofRows, y]) each.setDeviceMesh(DeviceMesh.range(2));
    for (const each of [x, scales[0]]) each.axis(0).parallelize("DIDx");
    for (const each of [whole, ofRows, y]) each.axis(0).parallelize("Stream");
    const { program } = compile(parse(print(lower(f))), { devices: 2, on: "cuda" });
    return deviceOps(program, 0, target).gemms.map(({ layout }) => layout.scaled);
  };
  const ofOperands = { left: "float8_e5m2", right: "float8_e4m3fn", vectors: true };
  expect(layoutsOf(false)).toEqual([ofOperands]);
  expect(layoutsOf(true)).toEqual([{ ...ofOperands, fastAccumulation: true }]);
});

it("copies scales of blocks to where cuBLASLt reads them before each chunk's GEMM, unless they lie so", () => {
  const f = new Fusion();
  const [x, w] = [f.input([2, 64, 512], "float8_e4m3fn"), f.input([256, 512], "float8_e4m3fn")];
  const [ofX, ofW] = [f.input([2, 64, 4], "float"), f.input([2, 4], "float")];
  const [whole, ofRows] = [set(x), set(ofX)];
  const y = scaledLinear(whole, w, ofRows, ofW, { fastAccumulation: true });
  f.output(y);
  for (const each of [x, w, ofX, ofW, whole, ofRows, y]) each.setDeviceMesh(DeviceMesh.range(2));
  for (const each of [x, ofX]) each.axis(0).parallelize("DIDx");
  for (const each of [whole, ofRows, y]) each.axis(0).parallelize("Stream");
  const { program } = compile(f, { devices: 2, on: "cuda", backend: "cuda", protocol: "put" });
  const { gemms, ops } = deviceOps(program, 0, target);
  expect(gemms.map(({ layout }) => layout.scaled)).toEqual([
    { left: "float8_e4m3fn", right: "float8_e4m3fn", vectors: true, blocks: { left: 128, right: 1 } },
  ]);
  const launches = ops.flatMap((op, i) => (op.kind === "gemm" ? [{ op, before: ops[i - 1] }] : []));
  expect(launches).toHaveLength(2);
  for (const { op, before } of launches) {
    const [scale, ofWeight] = op.scales ?? [];
    expect([scale?.space, ofWeight?.space]).toEqual(["scratch", "in"]);
    expect(before).toMatchObject({ kind: "launch", stream: op.stream });
    expect(before?.kind === "launch" ? before.parameters.at(-1) : null).toEqual(scale);
  }
});

it("multiplies groups on tensor cores of Hopper, with descriptors in scratch", () => {
  const f = new Fusion();
  const [x, w, ends] = [f.input([512, 128], "bfloat16"), f.input([4, 128, 256], "bfloat16"), f.input([4], "int")];
  f.output(groupedMatmul(x, w, ends));
  // Its rows are not multiples of 16 bytes.
  f.output(groupedMatmul(f.input([512, 130], "bfloat16"), f.input([4, 130, 256], "bfloat16"), ends));
  const { program } = compile(f, { devices: 1, on: "cuda" });
  const launches = (capability: number) =>
    deviceOps(program, 0, { ...target, capability }).ops.flatMap((op) => (op.kind === "launch" ? [op] : []));
  const [check, fast, slow] = launches(90);
  expect(check?.parameters).toEqual([fast?.parameters[2]]);
  expect(fast).toMatchObject({ grid: [9, 1, 1], sharedBytes: expect.any(Number) as number });
  expect(fast?.parameters.at(-1)).toMatchObject({ space: "scratch" });
  expect(slow?.sharedBytes).toBeUndefined();
  expect(launches(89).map(({ sharedBytes }) => sharedBytes)).toEqual([undefined, undefined]);
  const { kernels, memory } = deviceOps(program, 0, target);
  expect(kernels.map((text) => text.includes("wgmma"))).toEqual([false, true, false]);
  expect(kernels.map((text) => text.includes('__assertfail("the ends'))).toEqual([true, false, true]);
  expect(Math.max(...memory.scratchBytes)).toBe(2 * 128 * target.multiprocessors);
});

function isSingle({ kind }: { readonly kind: string }): boolean {
  return kind !== "batch" && kind !== "launch";
}

/** Every object with a space, at any depth. */
function addressesIn(value: unknown): readonly Address[] {
  if (typeof value !== "object" || value === null) return [];
  if ("space" in value) return [value as Address];
  return Object.values(value).flatMap(addressesIn);
}

function isKnown(address: Address, { streams, memory }: DeviceOps): boolean {
  switch (address.space) {
    case "in":
    case "out":
      return address.offset < (memory[address.space][address.tensor]?.bytes ?? 0);
    case "temporary":
      return address.offset < memory.temporaryBytes;
    case "symmetric":
      return address.offset < (memory.symmetricBytes[address.rank] ?? 0);
    case "word":
      return address.index < (memory.words[address.rank] ?? 0);
    case "gate":
      return address.index < memory.gates;
    case "progress":
      return address.stream < streams.length;
    case "scratch":
      return address.offset < (memory.scratchBytes[address.stream] ?? 0);
    case "workspace":
      return address.stream < streams.length;
  }
}
