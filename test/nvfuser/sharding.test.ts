/** nvFuser's tests/cpp/test_sharding.cpp: what is sharded, meshes, and what they exchange. */
import { expect, it } from "vitest";
import { add, DeviceMesh, Fusion, permute, sum, type TensorView } from "@braid-compiler/braid";
import { shardsOf } from "../../src/ir/shards.ts";
import { expectExchange, outputs, place, whole } from "./setup.ts";

const two = DeviceMesh.range(2);
const three = DeviceMesh.range(3);
const isSharded = (tensor: TensorView): boolean => shardsOf(tensor.data()).length > 0;

it("LogicalIsSharded", () => {
  const x = new Fusion().input([null, null, null]);
  whole(x, 2);
  x.split(0, 4);
  expect(isSharded(x)).toBe(true);
  // The split moves the axis and takes nothing from it.
  expect(x.axis(3).parallelType).toBe("DIDx");
});

it("AllocationIsSharded", () => {
  const x = new Fusion().input([null, null, null]);
  whole(x.split(1, 4), 1);
  x.setAllocationDomain([0, 1, 2, 3]);
  expect(isSharded(x)).toBe(true);
});

it("MultipleDIDx", () => {
  const x = whole(new Fusion().input([null]).split(0, 2), 0);
  expect(() => whole(x, 1)).toThrow("did-repeated");
});

it("Allreduce", async () => {
  const f = new Fusion();
  const x = f.input([null, null]);
  const y = sum(x, [0]);
  outputs(f, y);
  place(two, x, y);
  whole(x, 0);
  whole(y, 0);
  expect(isSharded(y)).toBe(false);
  await expectExchange(f, 2, "Allreduce 1", [[2, 4]]);
});

it("ReductionScatter", async () => {
  const f = new Fusion();
  const x = f.input([null, null]);
  const y = sum(x, [0]);
  outputs(f, y);
  place(two, x, y);
  whole(x, 0);
  whole(y, 0);
  whole(y, 1);
  expect(isSharded(y)).toBe(true);
  await expectExchange(f, 2, "ReduceScatter 1", [[2, 2]]);
});

it("ShardedAllocationDomain", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([2, 3, 4]), f.input([2, 3, 4])];
  const c = add(a, b);
  const d = sum(c, [1]);
  outputs(f, d);
  place(three, a, b, c, d);
  whole(a, 1);
  whole(c, 1);
  // The devices have the rows of b already, and the sum over devices needs no layout of its own.
  await expectExchange(f, 3, "Allreduce 1");
});

it.each([
  { sizes: "concrete", extents: [4, 2, 3, 5] },
  { sizes: "symbolic", extents: [null, null, null, null] },
])("ComputeIndex, $sizes", async ({ extents }) => {
  const f = new Fusion();
  const a = f.input(extents);
  const b = sum(a, [0]);
  const c = add(a, a);
  const d = permute(a, [2, 0, 1, 3]);
  outputs(f, b, c, d);
  place(three, a, b, c, d);
  whole(a, 2);
  whole(b, 2);
  whole(c, 2);
  whole(d, 0);
  await expectExchange(f, 3, "", [[4, 2, 3, 5]]);
});

it("MultiDimDeviceMesh", () => {
  const mesh = new DeviceMesh([
    [3, 4, 1],
    [0, 8, 2],
  ]);
  expect(mesh.shape).toEqual([2, 3]);
  expect(() => new DeviceMesh([1, 2, 0, 2])).toThrow("mesh-duplicate-device");
  const coordinates = (device: number): readonly number[] => [
    mesh.coordinate(device, "DIDy"),
    mesh.coordinate(device, "DIDx"),
  ];
  expect(coordinates(8)).toEqual([1, 1]);
  expect(coordinates(1)).toEqual([0, 2]);
  expect(mesh.slice(1, "DIDx")).toEqual([3, 4, 1]);
  expect(mesh.slice(1, "DIDy")).toEqual([1, 2]);
  expect(mesh.slice(2, "DIDy")).toEqual([1, 2]);
  const row = (first: number): readonly number[] => [first, first + 1, first + 2, first + 3];
  const cube = new DeviceMesh([
    [row(0), row(4), row(8)],
    [row(12), row(16), row(20)],
  ]);
  expect(cube.slice(18, "DIDz")).toEqual([6, 18]);
  expect(cube.slice(18, "DIDy")).toEqual([14, 18, 22]);
  expect(cube.slice(18, "DIDx")).toEqual([16, 17, 18, 19]);
});
