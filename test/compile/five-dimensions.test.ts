/**
 * Experts' MLPs on a mesh of five dimensions: fsdp x dp x tp x cp x ep. Tokens are cut by fsdp, dp and cp, experts by
 * ep, hidden columns by tp, and weights by fsdp as well.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  DeviceMesh,
  Fusion,
  lower,
  matmul,
  type NestedDevices,
  print,
  relu,
  set,
} from "@braid-compiler/braid";
import { didTypes } from "../../src/ir/parallel-type.ts";
import { at } from "../../src/support/invariant.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { expectRoundTrip } from "../support/round-trip.ts";
import { planOf, read } from "../plan/plans.ts";

const sizes = { fsdp: 2, dp: 2, tp: 2, cp: 2, ep: 2 };
const devices = 32;
/** The DID type of each dimension, outermost first. */
const types = { fsdp: "DIDv", dp: "DIDw", tp: "DIDz", cp: "DIDy", ep: "DIDx" } as const;

/** Dimensions by name, or by DID type. */
function experts(mesh: DeviceMesh, names: { readonly [K in keyof typeof sizes]: string }): Fusion {
  const f = new Fusion();
  const [x, up, down] = [f.input([2, 16, 4]), f.input([2, 4, 6]), f.input([2, 6, 4])];
  const y = matmul(relu(matmul(x, up)), down);
  f.output(y);
  for (const tensor of [x, up, down, y]) tensor.setDeviceMesh(mesh).axis(0).parallelize(names.ep);
  for (const tokens of [x, y]) {
    tokens.outerSplit(1, mesh.size(names.fsdp)).parallelize(names.fsdp);
    tokens.outerSplit(2, mesh.size(names.dp)).parallelize(names.dp);
    tokens.outerSplit(3, mesh.size(names.cp)).parallelize(names.cp);
  }
  up.outerSplit(1, mesh.size(names.fsdp)).parallelize(names.fsdp);
  up.outerSplit(3, mesh.size(names.tp)).parallelize(names.tp);
  down.outerSplit(1, mesh.size(names.tp)).parallelize(names.tp);
  down.outerSplit(3, mesh.size(names.fsdp)).parallelize(names.fsdp);
  return f;
}

const named = (): Fusion => experts(DeviceMesh.of(sizes), { fsdp: "fsdp", dp: "dp", tp: "tp", cp: "cp", ep: "ep" });

describe("a mesh of five dimensions", () => {
  it("has the oracle's values and no findings", async () => {
    await expectOracle(named(), { devices, machineAlone: true });
  });

  it("reads its dumps back", () => {
    const host = lower(named(), { rank: 5 });
    expect(print(host)).toMatch(/deviceIdx\.v.*deviceIdx\.w/u);
    expectRoundTrip(host, [{ rank: 5 }]);
  });

  it("has the same dump by DID type, on a mesh without names", () => {
    const byType = experts(DeviceMesh.ofShape(Object.values(sizes)), types);
    expect(print(lower(named()))).toBe(print(lower(byType)));
  });

  it("has a plan that reads back", async () => {
    const compiled = compile(named(), { devices, on: "cuda", backend: "cuda" });
    const { document, ranks } = await read(planOf(compiled));
    expect(document.world).toBe(devices);
    for (const { rank, commands } of compiled.program.ranks)
      expect(at(ranks, rank).notes.commandCount).toBe(commands.length);
  });
});

/** A tensor moves from one mesh to another of as many dimensions, in which other dimensions cut its axes. */
function moved(from: DeviceMesh, to: DeviceMesh): Fusion {
  const f = new Fusion();
  const x = f.input([16, 16]);
  const y = set(x);
  f.output(y);
  x.setDeviceMesh(from);
  y.setDeviceMesh(to);
  const types = didTypes.slice(0, from.shape.length);
  for (const [i, type] of types.entries()) x.outerSplit(i < 3 ? i : i + 1, 2).parallelize(type);
  for (const [i, type] of [...types.slice(2), ...types.slice(0, 2)].entries())
    y.outerSplit(i < 2 ? i : i + 1, 2).parallelize(type);
  return f;
}

/** The mesh of sizes 2 with its devices from `first` on. */
function cube(dimensions: number, first = 0): DeviceMesh {
  const level = (device: number, left: number): NestedDevices =>
    [device, device + 2 ** (left - 1)].map((each) => (left === 1 ? each : level(each, left - 1)));
  return new DeviceMesh(level(first, dimensions));
}

describe("a tensor that moves", () => {
  it.each([
    ["on a mesh of five dimensions", 32, cube(5), cube(5)],
    ["to another mesh of four", 32, cube(4), cube(4, 16)],
  ])("%s has the oracle's values", async (_, count, from, to) => {
    await expectOracle(moved(from, to), { devices: count, machineAlone: true });
  });

  // With any cut on any type, the search for a route would take minutes.
  it("to another mesh of six has a route", () => {
    expect(() => lower(moved(cube(6), cube(6, 64)))).not.toThrow();
  });
});
