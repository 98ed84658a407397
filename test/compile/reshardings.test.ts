/** What moves between devices, in bytes, and why. */
import { describe, expect, it } from "vitest";
import { add, DeviceMesh, Fusion, linear, relu, reshardings, slice } from "braid";

const two = DeviceMesh.range(2);

describe("a sequence-parallel MLP annotated on its inputs", () => {
  const build = (): Fusion => {
    const f = new Fusion();
    const [x, w1, w2] = [f.input([null, 4]), f.input([16, 4]), f.input([4, 16])];
    f.output(add(x, linear(relu(linear(x, w1)), w2)));
    for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(two);
    x.outerSplit(0, 2).parallelize("DIDx");
    w1.outerSplit(0, 2).parallelize("DIDx");
    w2.outerSplit(1, 2).parallelize("DIDx");
    return f;
  };

  it("gathers before and reduces behind, and says for whom", () => {
    const [gather, sum, ...others] = reshardings(build(), { sizes: { i0: 6 } });
    // Half of x, which is 6 rows of 4 floats; half of the partial sums, which are as large.
    expect(gather).toMatchObject({ tensor: 0, collective: "Allgather", along: "DIDx", chunked: false, bytes: 48 });
    expect(gather?.reason).toBe("T3 = linear(T0, T1) needs it to follow T1");
    expect(sum).toMatchObject({ collective: "ReduceScatter", along: "DIDx", bytes: 48 });
    expect(sum?.reason).toMatch(/sums over devices$/u);
    expect(others).toEqual([]);
  });

  it("knows no bytes without sizes", () => {
    expect(reshardings(build()).map(({ bytes }) => bytes)).toEqual([null, null]);
  });
});

it("lists nothing if each device has what it needs", () => {
  const f = new Fusion();
  const [x, y] = [f.input([8, 4]), f.input([8, 4])];
  f.output(add(x, y));
  for (const tensor of [x, y]) tensor.setDeviceMesh(two);
  x.outerSplit(0, 2).parallelize("DIDx");
  expect(reshardings(f)).toEqual([]);
});

it("says that the user placed the result", () => {
  const f = new Fusion();
  const x = f.input([8, 4]);
  const y = relu(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(two);
  x.outerSplit(0, 2).parallelize("DIDx");
  expect(reshardings(f)[0]?.reason).toBe("the result of T1 = relu(T0) is annotated");
});

it("refuses what lowering refuses, after the passes on the Fusion, too", () => {
  const f = new Fusion();
  const x = f.input([8, 4]).setDeviceMesh(two);
  const y = slice(x, [1, 0], [5, 4]);
  f.output(y);
  y.setDeviceMesh(two).axis(0).parallelize("Stream");
  expect(() => reshardings(f)).toThrow("stream-on-cut-axis");
});
