/** Tensor and axis text: every letter, dtype and parallel type of the dump grammar. */
import { describe, expect, it } from "vitest";
import { dtypes } from "../../src/numerics/dtype.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { broadcast, sum } from "../../src/ir/api/ops.ts";
import { irSpellings } from "../../src/ir/scalar/scalar.ts";
import { printIterDomain, printTensor } from "../../src/ir/print-tensor.ts";
import { at } from "../../src/support/invariant.ts";

describe("tensor text", () => {
  it.each([
    ["double", "double"],
    ["float", "float"],
    ["half", "__half"],
    ["bfloat16", "__bfloat"],
    ["int", "int"],
    ["int64", "int64_t"],
    ["bool", "bool"],
  ] as const)("prints dtype %s as %s", (dtype, printed) => {
    expect(dtypes[dtype].names.printed).toBe(printed);
    expect(String(new Fusion().input([2], dtype))).toBe(`T0_g_${printed}[iS0{2}]`);
  });

  it("prints the memory letters", () => {
    const x = new Fusion().input([]);
    expect(String(x)).toBe("T0_g_float[]");
    expect(String(x.setMemoryType("symmetric"))).toBe("T0_sym_float[]");
    expect(String(x.setMemoryType("local"))).toBe("T0_l_float[]");
  });

  it("prints every parallel type, and Stream as the style does", () => {
    const x = new Fusion().input([null, 2, 2, 2, 5]);
    x.axis(0).parallelize("Stream");
    x.axis(1).parallelize("DIDz");
    x.axis(2).parallelize("DIDy");
    x.axis(3).parallelize("DIDx");
    const devices = "ideviceIdx.z1{2}, ideviceIdx.y2{2}, ideviceIdx.x3{2}, iS4{5}";
    expect(printTensor(x.data())).toBe(`T0_g_float[istreamIdx0{i0}, ${devices}]`);
    expect(printTensor(x.data(), irSpellings["2025-04"])).toBe(`T0_g_float[iStreamIdx0{i0}, ${devices}]`);
    expect(printTensor(x.data(), irSpellings["2025-05"])).toBe(`T0_g_float[iStreamIdx0{i0}, ${devices}]`);
    expect(printIterDomain(at(x.data().domain.logical, 0), irSpellings["2025-04"])).toBe("iStreamIdx0{i0}");
  });

  it("prints iteration types by letter", () => {
    const x = new Fusion().input([3, 4]);
    expect(String(sum(x, [0]))).toBe("T1_g_float[rS2{3}, iS3{4}]");
    expect(String(broadcast(x, [false, true, false]))).toBe("T2_g_float[iS4{3}, bS5{1}, iS6{4}]");
  });

  it("prints the loop domain of a split and merged tensor, and expressions as extents", () => {
    const x = new Fusion().input([null, 6, 4]);
    x.split(0, 3);
    x.merge(2);
    expect(String(x)).toBe("T0_g_float[iS3{( ceilDiv(i0, 3) )}, iS4{3}, iS5{24}]");
    expect(x.data().domain.logical.map((axis) => printIterDomain(axis))).toEqual(["iS0{i0}", "iS1{6}", "iS2{4}"]);
  });

  it("prints meshes of any rank, or leaves them out", () => {
    const x = new Fusion().input([2]).setDeviceMesh(
      new DeviceMesh([
        [0, 1],
        [2, 3],
      ]),
    );
    expect(String(x)).toBe("T0_g_float[iS0{2}] (DeviceMesh{{0 1}{2 3}})");
    expect(printTensor(x.data(), irSpellings["2025-04"], false)).toBe("T0_g_float[iS0{2}]");
  });
});
