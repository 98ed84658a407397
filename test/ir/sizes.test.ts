/** Sizes of symbolic extents. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { reshape } from "../../src/ir/api/ops.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { binary, constant, symbol } from "../../src/ir/scalar/scalar.ts";
import { evaluateExtent, requireMeshSizes, shapeOf, sizesFromMeshes, sizesFromShapes } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

const f = new Fusion();
const x = f.input([null, 4, null]);
const y = f.input([null]);
const inputs = [x.data(), y.data()];

describe("sizes", () => {
  it("come from the shapes of the inputs, by printed name", () => {
    const sizes = sizesFromShapes(inputs, [[2, 4, 5], [7]]);
    expect([...sizes]).toEqual([
      ["i0", 2],
      ["i3", 5],
      ["i4", 7],
    ]);
    expect(shapeOf(x.data(), sizes)).toEqual([2, 4, 5]);
    expect(shapeOf(reshape(x, [-1, 2]).data(), sizes)).toEqual([20, 2]);
  });

  it.each([
    ["a wrong constant", [[2, 3, 5], [7]], "[2, 3, 5]", "[i0, 4, i3]"],
    ["a wrong rank", [[2, 4], [7]], "[2, 4]", "[i0, 4, i3]"],
    ["a negative size", [[2, 4, 5], [-1]], "[-1]", "[i4]"],
    ["a fraction", [[2, 4, 5], [1.5]], "[1.5]", "[i4]"],
  ])("are refused from %s", (_, shapes, found, expected) => {
    expect(diagnosticOf(() => sizesFromShapes(inputs, shapes))).toMatchObject({ code: "input-shape", found, expected });
  });

  it("are refused from another number of inputs", () => {
    expect(diagnosticOf(() => sizesFromShapes(inputs, [[2, 4, 5]]))).toMatchObject({ code: "input-count", found: "1" });
  });

  it("must agree where two axes share an extent", () => {
    const square = new Fusion().input([null, null]).data();
    const [rows, columns] = square.domain.logical;
    if (rows === undefined || columns === undefined) throw new Error("two axes");
    const logical = [rows, { ...columns, extent: rows.extent }];
    const tensor = { ...square, domain: { ...square.domain, logical, loop: logical } };
    expect([...sizesFromShapes([tensor], [[3, 3]])]).toEqual([["i0", 3]]);
    expect(diagnosticOf(() => sizesFromShapes([tensor], [[3, 4]]))).toMatchObject({
      code: "size-mismatch",
      found: "3 and 4",
    });
  });

  it("follow from the mesh for a sharded axis", () => {
    const g = new Fusion();
    const a = g.input([null, null]).setDeviceMesh(DeviceMesh.range(4));
    a.axis(0).parallelize("DIDx");
    expect([...sizesFromMeshes([a.data()])]).toEqual([["i0", 4]]);
    expect(() => requireMeshSizes([a.data()], new Map([["i0", 4]]))).not.toThrow();
    expect(() => requireMeshSizes([a.data()], new Map())).not.toThrow();
    expect(diagnosticOf(() => requireMeshSizes([a.data()], new Map([["i0", 8]])))).toMatchObject({
      code: "size-contradicts-mesh",
      found: "size 8, 4 devices along DIDx of a mesh of shape [DIDx 4]",
    });
    a.axis(0).parallelize("Serial");
    a.split(1, 2).axis(1).parallelize("DIDx");
    expect(diagnosticOf(() => requireMeshSizes([a.data()], new Map([["i2", 6]]))).code).toBe("size-contradicts-mesh");
  });

  it("are named when they are missing", () => {
    expect(evaluateExtent(constant(3), new Map())).toBe(3);
    const extent = binary("mul", symbol("i0"), binary("add", symbol("i2"), symbol("i3")));
    expect(evaluateExtent(extent, new Map(Object.entries({ i0: 2, i2: 3, i3: 4 })))).toBe(14);
    expect(diagnosticOf(() => evaluateExtent(extent, new Map([["i2", 3]])))).toMatchObject({
      code: "size-missing",
      message: "i0, i3 have no size",
      found: "sizes for i2",
    });
    expect(diagnosticOf(() => shapeOf(at(inputs, 1), new Map()))).toMatchObject({
      code: "size-missing",
      place: { kind: "tensor", text: "T1_g_float[iS3{i4}]" },
    });
  });
});
