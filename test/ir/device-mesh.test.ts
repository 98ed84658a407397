/** Meshes: sizes, slices and coordinates by DID type, text, and rejected meshes. */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, type TensorView } from "@braid-compiler/braid";
import { diagnosticOf } from "./expect-diagnostic.ts";

describe("a mesh of two dimensions", () => {
  const mesh = new DeviceMesh([
    [4, 2, 0],
    [1, 3, 5],
  ]);

  it("has DIDx along the inner dimension and DIDy along the outer", () => {
    expect([mesh.size("DIDx"), mesh.size("DIDy")]).toEqual([3, 2]);
    expect(mesh.hasAxis("DIDz")).toBe(false);
  });

  it("slices along one type and keeps the other", () => {
    expect(mesh.slice(3, "DIDx")).toEqual([1, 3, 5]);
    expect(mesh.slice(3, "DIDy")).toEqual([2, 3]);
    expect([mesh.coordinate(3, "DIDx"), mesh.coordinate(3, "DIDy")]).toEqual([1, 1]);
  });

  it("takes a size per dimension, outermost first", () => {
    expect(DeviceMesh.ofShape([2, 3]).toString()).toBe("DeviceMesh{{0 1 2}{3 4 5}}");
    expect(DeviceMesh.ofShape([2, 1, 2]).toString()).toBe("DeviceMesh{{{0 1}}{{2 3}}}");
    expect(DeviceMesh.ofShape([3]).equals(DeviceMesh.range(3))).toBe(true);
  });

  it("prints nested, and equals by shape and order", () => {
    expect(mesh.toString()).toBe("DeviceMesh{{4 2 0}{1 3 5}}");
    expect(
      mesh.equals(
        new DeviceMesh([
          [4, 2, 0],
          [1, 3, 5],
        ]),
      ),
    ).toBe(true);
    expect(mesh.equals(new DeviceMesh([4, 2, 0, 1, 3, 5]))).toBe(false);
  });
});

describe("a mesh with names", () => {
  const mesh = DeviceMesh.of({ dp: 2, tp: 4 });

  it("has the outermost dimension first, and devices numbered row by row", () => {
    expect(mesh.toString()).toBe("DeviceMesh{{0 1 2 3}{4 5 6 7}}");
    expect([mesh.names, mesh.shape]).toEqual([
      ["dp", "tp"],
      [2, 4],
    ]);
    expect([mesh.didType("tp"), mesh.didType("dp"), mesh.nameOf("DIDx"), mesh.nameOf("DIDy")]).toEqual([
      "DIDx",
      "DIDy",
      "tp",
      "dp",
    ]);
  });

  it("takes names and DID types alike", () => {
    for (const [name, type] of [
      ["tp", "DIDx"],
      ["dp", "DIDy"],
    ] as const) {
      expect(mesh.size(name)).toBe(mesh.size(type));
      expect(mesh.slice(6, name)).toEqual(mesh.slice(6, type));
      expect(mesh.coordinate(6, name)).toBe(mesh.coordinate(6, type));
    }
    expect([mesh.hasAxis("dp"), mesh.hasAxis("pp")]).toEqual([true, false]);
  });

  it("takes any devices", () => {
    expect(new DeviceMesh([[4, 5, 6, 7]], ["dp", "tp"]).slice(5, "tp")).toEqual([4, 5, 6, 7]);
  });

  it("is that of a tensor without a mesh that uses a name of it, if it is the only one", () => {
    const mesh = DeviceMesh.of({ dp: 2, tp: 4 });
    const f = new Fusion();
    const [x, y, z] = [f.input([8, 8]), f.input([8, 8]), f.input([8, 8])];
    x.setDeviceMesh(mesh);
    y.outerSplit(0, 4).parallelize("tp");
    expect([y.mesh, y.axis(0).parallelType]).toEqual([mesh, "DIDx"]);
    x.setDeviceMesh(DeviceMesh.of({ dp: 2, tp: 4 }));
    expect(() => z.outerSplit(0, 2).parallelize("dp")).not.toThrow();
    f.input([8]).setDeviceMesh(DeviceMesh.of({ tp: 2, ep: 4 }));
    expect(() => f.input([8, 8]).outerSplit(0, 2).parallelize("tp")).toThrow("tp is not a parallel type");
    expect(f.input([8, 8]).outerSplit(0, 4).parallelize("ep").parallelType).toBe("DIDx");
  });
  it("equals one without names, which places tensors alike", () => {
    expect(mesh.equals(DeviceMesh.ofShape([2, 4]))).toBe(true);
  });
});

describe("an axis that does not fit the mesh", () => {
  const refused = (mesh: DeviceMesh, place: (x: TensorView) => unknown) =>
    diagnosticOf(() => place(new Fusion().input([8, 8]).setDeviceMesh(mesh)));

  it("is refused with the shape of the mesh", () => {
    const { found, help } = refused(DeviceMesh.ofShape([4, 1]), (x) => x.outerSplit(0, 4).parallelize("DIDx"));
    expect(found).toBe("extent 4, 1 device along DIDx of a mesh of shape [DIDy 4, DIDx 1]");
    expect(help).toBe("give the mesh 4 devices along DIDx");
  });

  it("is refused with the names of the mesh", () => {
    const { found, help } = refused(DeviceMesh.of({ dp: 4, tp: 2 }), (x) => x.axis(0).parallelize("tp"));
    expect(found).toBe("extent 8, 2 devices along tp of a mesh of shape [dp 4, tp 2]");
    expect(help).toBe('T0.outerSplit(0, 2).parallelize("tp")');
  });

  it("is refused if two axes have one name", () => {
    const { message, place } = refused(DeviceMesh.of({ dp: 4, tp: 2 }), (x) => {
      x.outerSplit(0, 2).parallelize("tp");
      x.outerSplit(2, 2).parallelize("tp");
    });
    expect(message).toBe("tp is on two axes of T0");
    expect(place).toEqual({ kind: "call", text: 'T0.axis(2).parallelize("tp")' });
  });

  it("is split by the edit that the fix gives", () => {
    const { help } = refused(DeviceMesh.range(2), (x) => x.axis(1).parallelize("DIDx"));
    expect(help).toBe('T0.outerSplit(1, 2).parallelize("DIDx")');
    const x = new Fusion().input([8, 8]).setDeviceMesh(DeviceMesh.range(2));
    expect(() => x.outerSplit(1, 2).parallelize("DIDx")).not.toThrow();
  });
});

describe("refused", () => {
  it.each([
    ["a device twice", () => new DeviceMesh([0, 1, 0]), "mesh-duplicate-device"],
    ["no device", () => new DeviceMesh([]), "mesh-bad-device"],
    ["a negative device", () => new DeviceMesh([0, -1]), "mesh-bad-device"],
    ["half a device", () => new DeviceMesh([0.5]), "mesh-bad-device"],
    ["seven dimensions", () => new DeviceMesh([[[[[[[0]]]]]]]), "mesh-bad-device"],
    ["rows of different lengths", () => new DeviceMesh([[0, 1], [2]]), "mesh-not-rectangular"],
    ["a device beside a row", () => new DeviceMesh([[0], 1]), "mesh-not-rectangular"],
    ["a range of none", () => DeviceMesh.range(0), "mesh-bad-device"],
    ["five devices on two hosts", () => DeviceMesh.ofShape([2, 5 / 2]), "mesh-bad-device"],
    ["no rows", () => DeviceMesh.ofShape([0, 4]), "mesh-bad-device"],
    ["no dimension", () => DeviceMesh.ofShape([]), "mesh-bad-device"],
    ["seven sizes", () => DeviceMesh.ofShape([1, 1, 1, 1, 1, 1, 1]), "mesh-bad-device"],
    ["a size along a type it lacks", () => DeviceMesh.range(2).size("DIDy"), "mesh-axis-missing"],
    ["a size along a name it lacks", () => DeviceMesh.of({ dp: 2 }).size("tp"), "mesh-axis-missing"],
    ["half a device along a name", () => DeviceMesh.of({ dp: 0.5 }), "mesh-bad-device"],
    ["no name", () => DeviceMesh.of({}), "mesh-bad-device"],
    ["a name like a DID type", () => DeviceMesh.of({ DIDy: 2, tp: 2 }), "mesh-bad-name"],
    ["a name that is a number", () => DeviceMesh.of({ dp: 2, 1: 2 }), "mesh-bad-name"],
    ["a name twice", () => new DeviceMesh([[0, 1]], ["tp", "tp"]), "mesh-bad-name"],
    ["too few names", () => new DeviceMesh([[0, 1]], ["tp"]), "mesh-bad-name"],
    ["a slice of a device it lacks", () => DeviceMesh.range(2).slice(7, "DIDx"), "mesh-bad-device"],
  ] as const)("%s", (_, make, code) => {
    expect(diagnosticOf(make).code).toBe(code);
  });
});
