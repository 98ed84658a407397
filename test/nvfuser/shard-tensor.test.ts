/**
 * nvFuser's tests/python/multidevice/test_sharding.py (TestShardTensor): which elements of a whole tensor a rank holds.
 * Elements are numbered in row-major order.
 */
import { expect, it } from "vitest";
import { DeviceMesh, expand, Fusion, sum, type Tensor, type TensorView } from "@braid-compiler/braid";
import { arange, cut, localPart, place, whole } from "./setup.ts";

/** An input with the elements 0, 1, 2, .. on the devices of `mesh`. */
function input(mesh: DeviceMesh, shape: readonly number[]): TensorView {
  const x = new Fusion().input(shape);
  place(mesh, x);
  return x;
}

function partsOf(x: TensorView, shape: readonly number[], ranks: number): readonly (readonly number[])[] {
  return Array.from({ length: ranks }, (_, rank) => localPart(x, arange(shape), rank));
}

const two = DeviceMesh.range(2);
const grid = new DeviceMesh([
  [0, 1],
  [2, 3],
]);

it("test_inner_split", () => {
  const x = input(two, [6]);
  whole(x.split(0, 2), 1);
  expect(partsOf(x, [6], 2)).toEqual([
    [0, 2, 4],
    [1, 3, 5],
  ]);
});

it("test_nonoutermost_split", () => {
  const x = input(two, [12]);
  x.outerSplit(0, 2);
  cut(x, 1, 2);
  expect(partsOf(x, [12], 2)).toEqual([
    [0, 1, 2, 6, 7, 8],
    [3, 4, 5, 9, 10, 11],
  ]);
});

it("test_parallel_reduction", () => {
  const f = new Fusion();
  const x = f.input([2, 6]);
  const y = sum(x, [1]);
  place(two, x, y);
  cut(x, 1, 2);
  cut(y, 1, 2);
  expect(partsOf(x, [2, 6], 2)).toEqual([
    [0, 1, 2, 6, 7, 8],
    [3, 4, 5, 9, 10, 11],
  ]);
  expect(partsOf(y, [2], 2)).toEqual([
    [0, 1],
    [0, 1],
  ]);
});

it("test_2d_sharded_matrix", () => {
  const x = input(grid, [4, 6]);
  cut(x, 0, 2, "DIDy");
  cut(x, 2, 2);
  expect(partsOf(x, [4, 6], 4)).toEqual([
    [0, 1, 2, 6, 7, 8],
    [3, 4, 5, 9, 10, 11],
    [12, 13, 14, 18, 19, 20],
    [15, 16, 17, 21, 22, 23],
  ]);
});

it("test_2d_sharded_vector", () => {
  const x = input(grid, [24]);
  x.split(0, 6);
  cut(x, 0, 2, "DIDy");
  cut(x, 2, 2);
  const rows = (dp: number, tp: number): readonly number[] =>
    [0, 1].flatMap((row) => [0, 1, 2].map((i) => 12 * dp + 6 * row + 3 * tp + i));
  expect(partsOf(x, [24], 4)).toEqual([rows(0, 0), rows(0, 1), rows(1, 0), rows(1, 1)]);
});

it("test_context_and_tensor_parallel", () => {
  const x = input(grid, [2, 12, 2]);
  cut(x, 1, 2);
  cut(x, 2, 2, "DIDy");
  const part = (cp: number, tp: number): readonly number[] =>
    [0, 1].flatMap((b) => [0, 1, 2].flatMap((i) => [0, 1].map((e) => 24 * b + 2 * (6 * tp + 3 * cp + i) + e)));
  expect(partsOf(x, [2, 12, 2], 4)).toEqual([part(0, 0), part(0, 1), part(1, 0), part(1, 1)]);
});

it("test_expanded_broadcast", () => {
  const f = new Fusion();
  const y = expand(f.input([2, 1]), [2, 6]);
  place(two, y);
  cut(y, 1, 2);
  const rows: Tensor<"float"> = { ...arange([2, 6]), data: Float32Array.of(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1) };
  const half = [0, 0, 0, 1, 1, 1];
  expect([0, 1].map((rank) => localPart(y, rows, rank))).toEqual([half, half]);
});

it("test_broadcast", () => {
  const x = input(two, [1, 6]);
  cut(x, 1, 2);
  expect(partsOf(x, [1, 6], 2)).toEqual([
    [0, 1, 2],
    [3, 4, 5],
  ]);
});

it("a device outside the mesh", () => {
  const x = input(two, [6]);
  cut(x, 0, 2);
  expect(localPart(x, arange([6]), 2)).toEqual([0, 1, 2]);
});
