/** Lists that are recorded at once for several ranks are those that each rank would record. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CompileOptions,
  DeviceMesh,
  add,
  DiagnosticError,
  Fusion,
  gelu,
  type HostProgram,
  linear,
  lower,
  matmul,
  neg,
  record,
  set,
  sum,
} from "@braid-compiler/braid";
import { classesOf, type Lowered } from "../../src/compile/lower-all.ts";
import { recordAll } from "../../src/compile/record.ts";
import { byClass, UnlikeError } from "../../src/host/alike/classes.ts";
import { createRankRules } from "../../src/host/alike/rank-rules.ts";
import { createCommon } from "../../src/record/common.ts";
import { recordAlike } from "../../src/record/record.ts";
import { lowerRanks } from "../../src/compile/lower.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { layeredFusions } from "../support/layered-fusions.ts";
import { buildFusion, recipes } from "../support/random-fusion.ts";
import { everyNth } from "../support/suite.ts";

const devices = 8;

type Options = Pick<CompileOptions, "streams" | "protocol" | "allocator" | "communicators">;

/** Fails if a list is not the one that `record` makes. */
function expectSame(lowered: Pick<Lowered, "hosts" | "classes">, options: Options = {}): void {
  const { hosts } = lowered;
  const lists = recordAll(classesOf(lowered), { devices: hosts.length, ...options });
  for (const [rank, host] of hosts.entries()) {
    expect(lists[rank]).toEqual(record(host, { rank, devices: hosts.length, ...options }));
  }
}

function unlowered(): never {
  throw new Error("a Fusion has a class");
}

function recording(count: number) {
  const [sizes, scalars] = [new Map<string, number>(), new Map<string, number>()];
  const kinds = { protocol: "get", allocator: "braid", communicators: "team" } as const;
  return { sizes, scalars, streams: 4, devices: count, ...kinds };
}

/** Whether the ranks are recorded at once. */
function isAlike(
  host: HostProgram,
  count = devices,
  rules = createRankRules(Array.from({ length: count }, (_, rank) => rank)),
): boolean {
  try {
    return recordAlike(host, rules, rules.ranks, recording(count), createCommon()) !== null;
  } catch (error) {
    if (error instanceof UnlikeError) return false;
    throw error;
  }
}

function gathered(shape: readonly number[], p2p: "rotated" | "broadcast" = "rotated"): HostProgram {
  const f = new Fusion();
  const a = f.input(shape, "float");
  const b = f.input([6, 4], "float");
  const c = matmul(a, b);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  f.output(c);
  return lower(f, { rank: 0, backend: "cuda", p2p });
}

/** As examples/mlp.ts, in chunks of rows; the rows of all meshes but the last dimension have sequences of their own. */
function mlp(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const [tensors, data] = [mesh.size("DIDx"), mesh.devices.length / mesh.size("DIDx")];
  const x = f.input([data, 4 * tensors, 8], "float");
  const w1 = f.input([2 * tensors, 8], "float");
  const w2 = f.input([8, 2 * tensors], "float");
  const y = linear(gelu(linear(x, w1)), w2);
  f.output(add(x, y));
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(mesh);
  if (data > 1) x.axis(0).parallelize("DIDy");
  x.outerSplit(1, 2);
  x.outerSplit(2, tensors).parallelize("DIDx");
  w1.outerSplit(0, tensors).parallelize("DIDx");
  w2.outerSplit(1, tensors).parallelize("DIDx");
  y.outerSplit(1, 2).parallelize("Stream");
  return f;
}

/** Rows gathered in a loop over the devices, and shares that change places. */
function exchanged(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const size = mesh.size("DIDx");
  const a = f.input([size, 4, 8], "float");
  const b = f.input([8, size], "float");
  const c = matmul(a, b);
  const d = set(c);
  const e = set(d);
  f.output(e);
  for (const tensor of [a, b, c, d, e]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  d.axis(2).parallelize("DIDx");
  e.axis(0).parallelize("DIDx");
  return f;
}

describe("ranks of", () => {
  it.each(["get", "put"] as const)("a ring of copies are recorded at once, by %s", (protocol) => {
    const host = gathered([devices, 3, 6]);
    expect(isAlike(host)).toBe(true);
    expectSame({ hosts: Array.from({ length: devices }, () => host) }, { protocol, streams: 3 });
  });
  it("a loop with a root in each iteration are recorded alone", () => {
    const host = gathered([devices, 3, 6], "broadcast");
    expect(isAlike(host)).toBe(false);
    expectSame({ hosts: Array.from({ length: devices }, () => host) });
  });
  it.each(keysOf(layeredFusions))("layers of %s have the lists of each rank alone", (name) => {
    expectSame(lowerRanks(layeredFusions[name](1, devices), devices, { backend: "cuda" }));
  });
  const meshes = {
    "two dimensions": DeviceMesh.ofShape([2, 4]),
    "two dimensions in another order": new DeviceMesh([
      [6, 4, 2, 0],
      [7, 5, 3, 1],
    ]),
    "another order": new DeviceMesh([3, 1, 4, 0, 5, 7, 2, 6]),
  } as const;
  it.each(everyNth(keysOf(meshes), 3))(
    "a mesh of %s are recorded at once, with the lists of each rank alone",
    (name) => {
      const options = [
        { backend: "nccl" },
        { backend: "nccl", p2p: "linear" },
        { backend: "cuda" },
        { backend: "cuda", protocol: "put" },
        { backend: "cuda", devicesPerHost: 4 },
        { backend: "nccl", overlap: false },
        { backend: "cuda", overlap: false },
      ] as const;
      for (const build of [mlp, exchanged]) {
        for (const lowering of options) {
          const { classes, hosts } = lowerRanks(build(meshes[name]), devices, lowering);
          for (const communicators of ["team", "pair"] as const) expectSame({ classes, hosts }, { communicators });
          if (classes.length > 1 || "p2p" in lowering) continue;
          const [{ host, rules } = unlowered()] = classes;
          expect(isAlike(host, devices, rules)).toBe(true);
        }
      }
    },
  );
  it("two stages have the lists of each rank alone, whoever sends", () => {
    const f = new Fusion();
    const [early, late] = [new DeviceMesh([0, 2, 4, 6]), new DeviceMesh([7, 5, 3, 1])];
    const a = f.input([4, 8, 6], "float");
    const b = set(set(a));
    for (const tensor of [a]) tensor.setDeviceMesh(early);
    b.setDeviceMesh(late);
    a.axis(0).parallelize("DIDx");
    b.axis(0).parallelize("DIDx");
    const c = set(b);
    c.setDeviceMesh(late);
    f.output(c);
    for (const backend of ["nccl", "cuda"] as const) {
      const lowered = lowerRanks(f, devices, { backend });
      expect(lowered.classes.length).toBeLessThanOrEqual(3);
      expectSame(lowered);
    }
  });
  it("uneven shares are split by their lengths", () => {
    const f = new Fusion();
    const a = f.input([devices * 2 - 1, 6], "float");
    const b = neg(a);
    for (const tensor of [a, b]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    a.outerSplit(0, devices).parallelize("DIDx");
    b.outerSplit(0, devices).parallelize("DIDx");
    f.output(b);
    const lowered = lowerRanks(f, devices);
    expect(lowered.classes).toHaveLength(1);
    const parts: unknown[] = [];
    const [{ host, rules, ranks } = unlowered()] = lowered.classes;
    const found = byClass(ranks, (part) => {
      parts.push(part);
      return recordAlike(host, rules, part, recording(devices), createCommon());
    });
    expect(parts).toEqual([ranks, ranks.slice(0, -1)]);
    expect(found.map((part) => part.ranks)).toEqual([ranks.slice(0, -1), ranks.slice(-1)]);
    expectSame(lowered);
  });
  it("uneven shards have the lists of each rank alone", () => {
    const f = new Fusion();
    const a = f.input([devices * 2 - 1, 6], "float");
    const b = set(a);
    for (const tensor of [a, b]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    a.outerSplit(0, devices).parallelize("DIDx");
    f.output(b);
    for (const backend of ["cuda", "nccl"] as const) expectSame(lowerRanks(f, devices, { backend }));
  });
  it.each([15, 16, 17, 5])("%i rows in uneven chunks have the lists of each rank alone", (rows) => {
    for (const mesh of [DeviceMesh.range(devices), DeviceMesh.ofShape([2, 4])]) {
      const f = new Fusion();
      const a = f.input([rows, 6], "float");
      const b = set(a);
      const c = f.input([devices, rows, 6], "float");
      const d = sum(c, [0]);
      for (const tensor of [a, b, c, d]) tensor.setDeviceMesh(mesh);
      a.outerSplit(0, mesh.size("DIDx")).parallelize("DIDx");
      b.outerSplit(0, 4).parallelize("Stream");
      c.outerSplit(0, mesh.size("DIDx")).parallelize("DIDx");
      d.outerSplit(1, mesh.size("DIDx")).parallelize("DIDx");
      for (const tensor of [b, d]) f.output(tensor);
      for (const backend of ["cuda", "nccl"] as const) expectSame(lowerRanks(f, devices, { backend }));
    }
  });
  it("random programs have the lists of each rank alone", () => {
    fc.assert(
      fc.property(recipes, (recipe) => {
        try {
          expectSame(lowerRanks(buildFusion(recipe), devices, { backend: "cuda" }));
        } catch (error) {
          if (!(error instanceof DiagnosticError)) throw error;
        }
      }),
      { numRuns: 25, seed: 1 },
    );
  });
});
