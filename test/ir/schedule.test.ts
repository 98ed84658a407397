/** Splits, merges, parallel types, meshes and memory order. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { matmul, sum } from "../../src/ir/api/ops.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { printScalar } from "../../src/ir/scalar/scalar.ts";

const grid = new DeviceMesh([
  [0, 1],
  [2, 3],
]);

describe("split and merge", () => {
  it("split by the inner extent, or by the outer", () => {
    const x = new Fusion().input([12, null]);
    x.split(0, 3);
    expect(String(x)).toBe("T0_g_float[iS2{4}, iS3{3}, iS1{i2}]");
    x.split(-1, 5, { inner: false });
    expect(String(x)).toBe("T0_g_float[iS2{4}, iS3{3}, iS4{5}, iS5{( ceilDiv(i2, 5) )}]");
    x.split(3, 2, { inner: true });
    expect(x.data().domain.transforms).toEqual([
      { kind: "split", input: 0, outer: 2, inner: 3, factor: 3, innerSplit: true },
      { kind: "split", input: 1, outer: 4, inner: 5, factor: 5, innerSplit: false },
      { kind: "split", input: 5, outer: 6, inner: 7, factor: 2, innerSplit: true },
    ]);
    expect([x.rank, x.nDims]).toEqual([2, 5]);
    expect(x.extents.map((extent) => printScalar(extent))).toEqual(["12", "i2"]);
  });

  it("make parts that round up, of which later ones are shorter", () => {
    const x = new Fusion().input([10, 7]);
    x.split(0, 4);
    const outer = x.outerSplit(-1, 3);
    expect(String(x)).toBe("T0_g_float[iS2{3}, iS3{4}, iS4{3}, iS5{3}]");
    expect(String(outer)).toBe("iS4{3}");
    expect(String(x.outerSplit(0, 2))).toBe("iS6{2}");
  });

  it("merge neighbours, the outer's place first", () => {
    const f = new Fusion();
    const x = f.input([2, 3, null]);
    x.merge(1);
    expect(String(x)).toBe("T0_g_float[iS0{2}, iS3{( i3 * 3 )}]");
    x.merge(-2);
    expect(String(x)).toBe("T0_g_float[iS4{( ( i3 * 3 ) * 2 )}]");
    expect(x.data().domain.transforms.at(-1)).toEqual({ kind: "merge", outer: 0, inner: 3, output: 4 });
    expect(String(f.input([2]))).toBe("T1_g_float[iS5{2}]");
  });

  it("merge reduced axes with each other", () => {
    const f = new Fusion();
    expect(String(sum(f.input([2, 3, 4]), [1, 2]).merge(1))).toBe("T1_g_float[iS3{2}, rS6{12}]");
  });
});

describe("parallel types", () => {
  it("stand in every domain of the tensor and can be taken back", () => {
    const x = new Fusion().input([4, 2]).setAllocationDomain([1, 0]);
    const axis = x.axis(0).parallelize("Stream");
    const { logical, loop, allocation } = x.data().domain;
    expect([logical[0], loop[0], allocation?.[1]].map((a) => a?.parallelType)).toEqual(["Stream", "Stream", "Stream"]);
    expect([axis.parallelType, axis.iterType, String(axis)]).toEqual(["Stream", "iteration", "istreamIdx0{4}"]);
    axis.parallelize("Serial");
    x.axis(1).parallelize("Stream");
    expect(String(x)).toBe("T0_g_float[iS0{4}, istreamIdx1{2}]");
    x.axis(1).parallelize("Stream");
  });

  it("accept one DID type on a kept and on a reduced axis: a reduce-scatter's partial result", () => {
    const f = new Fusion();
    const y = sum(f.input([2, 2, 4]), [0]);
    y.axis(0).parallelize("DIDx");
    y.axis(1).parallelize("DIDx");
    expect(String(y)).toBe("T1_g_float[rdeviceIdx.x3{2}, ideviceIdx.x4{2}, iS5{4}]");
  });

  it("fit the mesh along their own dimension", () => {
    const x = new Fusion().input([2, 2, null]).setDeviceMesh(new DeviceMesh([[0], [1]]));
    x.axis(0).parallelize("DIDy");
    x.axis(2).parallelize("DIDx");
    expect(x.mesh?.shape).toEqual([2, 1]);
  });

  it("stand on an axis of a split", () => {
    const f = new Fusion();
    const c = matmul(f.input([4, 6]), f.input([6, 8])).setDeviceMesh(DeviceMesh.range(2));
    c.split(1, 2, { inner: false });
    c.axis(1).parallelize("DIDx");
    expect(String(c)).toBe("T2_g_float[iS4{4}, ideviceIdx.x7{2}, iS8{4}, rS6{6}] (DeviceMesh{0 1})");
  });
});

describe("handles of axes", () => {
  it("stay on their axis when others are split", () => {
    const x = new Fusion().input([4, 6]);
    const columns = x.axis(1);
    x.split(0, 2);
    columns.parallelize("Stream");
    expect(x.axis(2).id).toBe(columns.id);
    expect(x.axis(-1).parallelType).toBe("Stream");
  });

  it("still read an axis that was split or merged away", () => {
    const x = new Fusion().input([4, 6]);
    const rows = x.axis(0);
    x.split(0, 2);
    const [outer, inner] = [x.axis(0), x.axis(1)];
    x.merge(0);
    expect([rows, outer, inner].map(String)).toEqual(["iS0{4}", "iS2{2}", "iS3{2}"]);
  });
});

describe("memory", () => {
  it("orders the logical or the loop axes, by number or handle, reduced ones optional", () => {
    const f = new Fusion();
    const x = f.input([2, 3]).setAllocationDomain([1, 0]);
    expect(x.data().domain.allocation?.map((axis) => axis.id)).toEqual([1, 0]);
    const rows = x.axis(0);
    const columns = x.axis(1);
    x.split(0, 1);
    x.setAllocationDomain([columns, rows]);
    expect(x.data().domain.allocation?.map((axis) => axis.id)).toEqual([1, 0]);
    x.setAllocationDomain([2, 0, 1]);
    expect(x.data().domain.allocation?.map((axis) => axis.id)).toEqual([1, 2, 3]);
    const y = sum(f.input([2, 3, 4]), [1]);
    expect(
      y
        .setAllocationDomain([2, 0])
        .data()
        .domain.allocation?.map((axis) => axis.id),
    ).toEqual([9, 7]);
  });

  it("keeps mesh and memory type", () => {
    const x = new Fusion().input([2]).setDeviceMesh(grid).setMemoryType("symmetric");
    expect(x.mesh).toBe(grid);
    expect(x.memoryType).toBe("symmetric");
  });
});
