/** The host programs of a class, made from that of its first rank, are those that each rank would lower to. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeviceMesh, DiagnosticError, Fusion, lower, type LowerOptions, matmul, set } from "@braid-compiler/braid";
import { lowerRanks } from "../../src/compile/lower.ts";
import { buildFusion, recipes } from "../support/random-fusion.ts";

const devices = 6;

/** The number of classes. Fails if a rank's host program is not the one that `lower` makes for it. */
function countClasses(fusion: Fusion, options: Omit<LowerOptions, "rank"> = {}): number {
  const { hosts, classes } = lowerRanks(fusion, devices, options);
  expect(hosts).toHaveLength(devices);
  for (const [rank, host] of hosts.entries()) expect(host).toEqual(lower(fusion, { ...options, rank }));
  return classes.length;
}

/** Allgather + matmul; `late` is the mesh of a copy of the result. */
function gathered(mesh: DeviceMesh, late: DeviceMesh | null = null): Fusion {
  const f = new Fusion();
  const a = f.input([mesh.devices.length, 4, 8], "float");
  const b = f.input([8, 2], "float");
  const c = matmul(a, b);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  f.output(c);
  if (late === null) return f;
  const d = set(c);
  d.setDeviceMesh(late);
  f.output(d);
  return f;
}

describe("host programs of", () => {
  it.each(["nccl", "cuda"] as const)("the mesh 0 .. D-1 are one, with backend %s", (backend) => {
    expect(countClasses(gathered(DeviceMesh.range(devices)), { backend })).toBe(1);
  });
  it("a smaller mesh are one on it and one outside", () => {
    expect(countClasses(gathered(DeviceMesh.range(4)), { backend: "cuda" })).toBe(2);
  });
  it.each(["rotated", "broadcast", "linear"] as const)("a mesh in another order are one class, by %s loops", (p2p) => {
    const backend = p2p === "linear" ? "nccl" : "cuda";
    for (const order of [
      [5, 4, 3, 2, 1, 0],
      [0, 2, 4, 5, 3, 1],
    ]) {
      expect(countClasses(gathered(new DeviceMesh(order)), { backend, p2p })).toBe(1);
    }
  });
  it("a mesh of two dimensions are one class", () => {
    const mesh = new DeviceMesh([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    const f = new Fusion();
    const a = f.input([3, 4], "float");
    const b = set(a);
    for (const tensor of [a, b]) tensor.setDeviceMesh(mesh);
    a.axis(0).parallelize("DIDx");
    f.output(b);
    expect(countClasses(f)).toBe(1);
    // Its rows are hosts: both teams are on one. With larger hosts, one of them is on two.
    expect(countClasses(f, { backend: "cuda", devicesPerHost: 3 })).toBe(1);
    expect(countClasses(f, { backend: "cuda", devicesPerHost: 4 })).toBe(2);
  });
  it("two stages are one class each, the root of a broadcast by itself", () => {
    expect(countClasses(gathered(DeviceMesh.range(3), new DeviceMesh([3, 4, 5])))).toBe(2);
    // One device is in neither stage.
    expect(countClasses(gathered(DeviceMesh.range(3), new DeviceMesh([3, 4])))).toBe(4);
  });
  it("no mesh are one on device 0 and one elsewhere", () => {
    const f = new Fusion();
    f.output(matmul(f.input([4, 8], "float"), f.input([8, 2], "float")));
    expect(countClasses(f)).toBe(2);
  });
  it("random Fusions are equal wherever they are shared", () => {
    let shared = 0;
    fc.assert(
      fc.property(recipes, (recipe) => {
        try {
          if (countClasses(buildFusion(recipe)) < devices) shared++;
        } catch (error) {
          if (!(error instanceof DiagnosticError)) throw error;
        }
      }),
      { numRuns: 25, seed: 1 },
    );
    expect(shared).toBeGreaterThan(2);
  });
});
