/** With `backend: "cuda"`, devices of one host copy between each other's memories, and hosts communicate by NCCL. */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, linear, lower, type LowerOptions, print, set } from "@braid-compiler/braid";
import { compile } from "../../src/compile/compile.ts";
import { exampleFusion } from "../support/example-program.ts";

/** A ring of all devices: shards of x are the chunks of y. */
function ring(devices: number): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([8 * devices, 4]), f.input([4, 4])];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(0, devices).parallelize("DIDx");
  y.outerSplit(0, devices).parallelize("Stream");
  return f;
}

/** Chunks that no share is a whole number of, so that each is gathered from all that have a part. */
function ranges(): Fusion {
  const f = new Fusion();
  const x = f.input([12, 4]);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.outerSplit(0, 4).parallelize("DIDx");
  y.outerSplit(0, 3).parallelize("Stream");
  return f;
}

/** What communicates, and by what, in the order of the program. */
function communications(f: Fusion, options: LowerOptions): readonly string[] {
  const text = print(lower(f, { backend: "cuda", ...options }));
  const pattern = /Communication \d+ \(type=(\w+).*?(?:team=\(([\d ]+)\).*?)?backend=(\w+)\)/gu;
  return [...text.matchAll(pattern)].map(([, type = "", team = "", backend = ""]) => [type, team, backend].join(" "));
}

describe("hierarchical programs of two hosts, two devices each", () => {
  it.each([
    ["hosts/allgather-matmul.ts", ["Allgather 1 3 NCCL", "Allgather 0 1 CUDA"]],
    ["hosts/matmul-reduce-scatter.ts", ["ReduceScatter 0 1 CUDA", "ReduceScatter 1 3 NCCL"]],
    ["hosts/matmul-allreduce.ts", ["ReduceScatter 0 1 CUDA", "Allreduce 1 3 NCCL", "Allgather 0 1 CUDA"]],
  ])("%s", async (name, expected) => {
    const f = await exampleFusion(name, 4, {}, 2);
    expect(communications(f, { rank: 1, devicesPerHost: 2 })).toEqual(expected);
  });
});

describe("one team over two hosts communicates by NCCL", () => {
  it.each([
    ["a ring", ring(4), {}, ["recv  NCCL", "send  NCCL"]],
    ["a loop of Broadcasts", ring(4), { p2p: "broadcast" }, ["Broadcast 0 1 2 3 NCCL"]],
    ["a gather of parts", ranges(), {}, ["Allgather 0 1 2 3 NCCL"]],
  ] as const)("%s", (_, f, options, expected) => {
    expect(communications(f, { ...options, devicesPerHost: 2 })).toEqual(expected);
    const inMemory = communications(f, { ...options, devicesPerHost: 4 });
    expect(inMemory.filter((text) => text.endsWith("CUDA"))).toHaveLength(inMemory.length);
    expect(compile(f, { devices: 4, backend: "cuda", ...options, devicesPerHost: 2 }).report.findings).toEqual([]);
  });
});

it("needs hosts of equal numbers of devices", () => {
  expect(() => compile(ring(4), { devices: 4, devicesPerHost: 3 })).toThrow(/the devices do not fill their hosts/);
  expect(compile(ring(4), { devices: 4, devicesPerHost: 8 }).report.ok).toBe(true);
});
