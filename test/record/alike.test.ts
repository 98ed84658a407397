/** Lists that are recorded at once for several ranks are those that each rank would record. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CompileOptions,
  DeviceMesh,
  DiagnosticError,
  Fusion,
  type HostProgram,
  lower,
  matmul,
  record,
  set,
} from "braid";
import { recordAll } from "../../src/compile/record.ts";
import { createCommon } from "../../src/record/common.ts";
import { recordAlike } from "../../src/record/record.ts";
import { lowerRanks } from "../../src/compile/lower.ts";
import { keysOf } from "../../src/support/keys-of.ts";
import { layeredFusions } from "../support/layered-fusions.ts";
import { buildFusion, recipes } from "../support/random-fusion.ts";

const devices = 8;

type Options = Pick<CompileOptions, "streams" | "protocol" | "allocator" | "communicators">;

/** Fails if a list is not the one that `record` makes. */
function expectSame(hosts: readonly HostProgram[], options: Options = {}): void {
  const lists = recordAll(hosts, { devices: hosts.length, ...options });
  for (const [rank, host] of hosts.entries()) {
    expect(lists[rank]).toEqual(record(host, { rank, devices: hosts.length, ...options }));
  }
}

/** Whether the ranks are recorded at once. */
function isAlike(host: HostProgram, count = devices): boolean {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  const options = {
    sizes: new Map<string, number>(),
    scalars: new Map<string, number>(),
    streams: 4,
    protocol: "get",
    allocator: "braid",
    communicators: "team",
    devices: count,
  } as const;
  return recordAlike(host, ranks, options, createCommon()) !== null;
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

describe("ranks of", () => {
  it.each(["get", "put"] as const)("a ring of copies are recorded at once, by %s", (protocol) => {
    const host = gathered([devices, 3, 6]);
    expect(isAlike(host)).toBe(true);
    expectSame(
      Array.from({ length: devices }, () => host),
      { protocol, streams: 3 },
    );
  });
  it("a loop with a root in each iteration are recorded alone", () => {
    const host = gathered([devices, 3, 6], "broadcast");
    expect(isAlike(host)).toBe(false);
    expectSame(Array.from({ length: devices }, () => host));
  });
  it.each(keysOf(layeredFusions))("layers of %s have the lists of each rank alone", (name) => {
    expectSame(lowerRanks(layeredFusions[name](1, devices), devices, { backend: "cuda" }).hosts);
  });
  it("uneven shards have the lists of each rank alone", () => {
    const f = new Fusion();
    const a = f.input([devices * 2 - 1, 6], "float");
    const b = set(a);
    for (const tensor of [a, b]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    a.outerSplit(0, devices).parallelize("DIDx");
    f.output(b);
    for (const backend of ["cuda", "nccl"] as const) expectSame(lowerRanks(f, devices, { backend }).hosts);
  });
  it("random programs have the lists of each rank alone", () => {
    fc.assert(
      fc.property(recipes, (recipe) => {
        try {
          expectSame(lowerRanks(buildFusion(recipe), devices, { backend: "cuda" }).hosts);
        } catch (error) {
          if (!(error instanceof DiagnosticError)) throw error;
        }
      }),
      { numRuns: 25, seed: 1 },
    );
  });
});
