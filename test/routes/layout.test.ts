/** The measure itself: what devices lack, and how collectives are counted. */
import { expect, it } from "vitest";
import { compile, DeviceMesh, Fusion, linear, set } from "@braid-compiler/braid";
import { lack, layout } from "./layout.ts";
import { mostReceived } from "./received-bytes.ts";

it.each([
  ["gathered", "x4", "[x][]", "[][]", 96],
  ["cut", "x4", "[][]", "[x][]", 0],
  ["cut along the other axis", "x4", "[x][]", "[][x]", 24],
  ["exchanged dimensions", "x2 y2", "[x][y]", "[y][x]", 32],
  ["reordered parts", "x2 y4", "[x y][]", "[y x][]", 16],
  ["a part gathered", "x2 y4", "[x y][]", "[x y(1)2][]", 16],
])("%s: %s %s -> %s", (_, mesh, before, after, elements) => {
  expect(lack([16, 8], layout(mesh, before), layout(mesh, after))).toBe(elements);
});

it("counts summands as ring collectives move them", () => {
  const sums = layout("x4", "[][]", { pending: ["x"] });
  expect(lack([16, 8], sums, layout("x4", "[][]"))).toBe((2 * 128 * 3) / 4);
  expect(lack([16, 8], sums, layout("x4", "[x][]"))).toBe((128 * 3) / 4);
});

it("counts what moves between meshes, and uneven parts", () => {
  const onOthers = layout("x2", "[x][]", { devices: [2, 3] });
  expect(lack([16, 8], layout("x2", "[x][]"), onOthers)).toBe(64);
  expect(lack([7, 1], layout("x3", "[x][]"), layout("x3", "[][]"))).toBe(6);
});

const mesh = DeviceMesh.range(4);

it.each([
  ["Allgather", 0, null, 96],
  ["AllToAll", 0, 1, 24],
] as const)("counts an %s", (_, before, after, elements) => {
  const f = new Fusion();
  const x = f.input([16, 8]);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
  x.outerSplit(before, 4).parallelize("DIDx");
  if (after !== null) y.outerSplit(after, 4).parallelize("DIDx");
  for (const backend of ["nccl", "cuda"] as const) {
    expect(mostReceived(compile(f, { devices: 4, backend }).program)).toBe(4 * elements);
  }
});

it.each([
  ["Allreduce", false, 2 * 96],
  ["ReduceScatter", true, 96],
] as const)("counts an %s", (_, isCut, elements) => {
  const f = new Fusion();
  const [x, w] = [f.input([16, 8]), f.input([8, 8])];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(mesh);
  for (const tensor of [x, w]) tensor.outerSplit(1, 4).parallelize("DIDx");
  if (isCut) y.outerSplit(0, 4).parallelize("DIDx");
  for (const backend of ["nccl", "cuda"] as const) {
    expect(mostReceived(compile(f, { devices: 4, backend }).program)).toBe(4 * elements);
  }
});
