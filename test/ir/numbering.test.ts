/** T, axis and extent numbers follow nvFuser's creation order: expectations are taken from its dumps. */
import { describe, expect, it } from "vitest";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, broadcast, cast, linear, matmul, permute, set, sum } from "../../src/ir/api/ops.ts";
import { irSpellings } from "../../src/ir/scalar/scalar.ts";
import { printTensor } from "../../src/ir/print-tensor.ts";

const mesh = DeviceMesh.range(8);
const meshText = "(DeviceMesh{0 1 2 3 4 5 6 7})";
const may = irSpellings["2025-05"];

describe("numbers of a fusion", () => {
  it("prints allgather + matmul as the dump of #4387 does", () => {
    const f = new Fusion();
    const a = f.input([null, null, null, null], "float");
    const b = f.input([null, null], "float");
    const c = matmul(a, b);
    f.output(c);
    for (const tv of [a, b, c]) tv.setDeviceMesh(mesh);
    a.axis(1).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
    expect(printTensor(a.data(), may)).toBe(`T0_g_float[iS0{i0}, ideviceIdx.x1{i2}, iS2{i3}, iS3{i4}] ${meshText}`);
    expect(printTensor(b.data(), may)).toBe(`T1_g_float[iS4{i5}, iS5{i6}] ${meshText}`);
    expect(printTensor(c.data(), may)).toBe(
      `T2_g_float[iStreamIdx6{i0}, iS7{i2}, iS8{i3}, iS9{i6}, rS10{i4}] ${meshText}`,
    );
    expect(f.data()).toMatchObject({ iterDomainCount: 11, scalarCount: 7, inputs: [0, 1], outputs: [2] });
  });

  it("prints linear with constant extents as the dump of #5327 does", () => {
    const f = new Fusion();
    const x = f.input([8, 128, 1024], "bfloat16");
    const w = f.input([1024, 1024], "bfloat16");
    const bias = f.input([1024], "bfloat16");
    const y = linear(x, w, bias);
    for (const tv of [x, w, bias, y]) tv.setDeviceMesh(mesh);
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    expect(String(x)).toBe(`T0_g___bfloat[ideviceIdx.x0{8}, iS1{128}, iS2{1024}] ${meshText}`);
    expect(String(bias)).toBe(`T2_g___bfloat[iS5{1024}] ${meshText}`);
    expect(String(y)).toBe(`T3_g___bfloat[istreamIdx6{8}, iS7{128}, iS8{1024}, rS9{1024}] ${meshText}`);
  });

  it("prints a sum as the dump of #4387's allreduce does, and drops the reduced axis in the next op", () => {
    const f = new Fusion();
    const x = f.input([null, null, null]);
    const y = sum(x, [1]);
    y.axis(0).parallelize("Stream");
    expect(printTensor(y.data(), may)).toBe("T1_g_float[iStreamIdx3{i0}, rS4{i2}, iS5{i3}]");
    expect(String(set(y))).toBe("T2_g_float[iS6{i0}, iS7{i3}]");
  });

  it("counts constant extents, and skips a number only after the first extent of all", () => {
    const f = new Fusion();
    f.input([4], "int");
    const x = f.input([null, 3, null], "int");
    expect(String(x)).toBe("T1_g_int[iS1{i2}, iS2{3}, iS3{i4}]");
    expect(String(f.input([]))).toBe("T2_g_float[]");
    expect(String(f.input([null]))).toBe("T3_g_float[iS4{i5}]");
  });

  it("numbers the axes of permute in the input's order and those of broadcast in the output's", () => {
    const f = new Fusion();
    const x = f.input([2, 3, 4], "half");
    expect(String(permute(x, [2, 0, 1]))).toBe("T1_g___half[iS5{4}, iS3{2}, iS4{3}]");
    expect(String(broadcast(x, [true, false, false, true, false]))).toBe(
      "T2_g___half[bS6{1}, iS7{2}, iS8{3}, bS9{1}, iS10{4}]",
    );
  });

  it("numbers inserted casts as ops of their own", () => {
    const f = new Fusion();
    const sumOf = add(f.input([2], "half"), cast(f.input([2], "int64"), "bfloat16"));
    expect(String(sumOf)).toBe("T5_g_float[iS5{2}]");
    expect(f.data().ops.map((op) => op.kind)).toEqual(["Cast", "Cast", "Cast", "Binary"]);
  });
});
