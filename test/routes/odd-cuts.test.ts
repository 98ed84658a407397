/** Cuts that few programs have: uneven parts of parts, more parts than indices, one type twice, replicated dimensions. */
import { expect, it } from "vitest";
import { add, DeviceMesh, Fusion, linear, lower, relu, set, sum, type TensorView } from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";

type Place = (tensor: TensorView) => void;

/** A set from one cut to another. */
function moved(mesh: DeviceMesh, shape: readonly number[], from: Place, to: Place): Fusion {
  const f = new Fusion();
  const x = f.input(shape);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
  from(x);
  to(y);
  return f;
}

/** A linear whose operands are cut along the axis that it contracts. */
function contracted(mesh: DeviceMesh, x: Place, w: Place): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([4, 8]), f.input([8, 8])];
  f.output(linear(a, b));
  for (const tensor of [a, b]) tensor.setDeviceMesh(mesh);
  x(a);
  w(b);
  return f;
}

const outer =
  (...parts: readonly (readonly [axis: number, count: number, type?: string])[]): Place =>
  (tensor) => {
    for (const [axis, count, type] of parts) {
      const made = tensor.outerSplit(axis, count);
      if (type !== undefined) made.parallelize(type);
    }
  };

const inner =
  (factor: number, type?: "DIDx"): Place =>
  (tensor) => {
    tensor.split(0, factor);
    if (type !== undefined) tensor.axis(0).parallelize(type);
  };

const two = DeviceMesh.range(2);

/** Column sums of two tensors whose rows are cut, added. */
function addedSums(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([8, 6]), f.input([8, 6])];
  f.output(add(sum(a, [0]), sum(b, [0])));
  for (const tensor of [a, b]) {
    tensor.setDeviceMesh(mesh);
    outer([0, 2, "DIDx"])(tensor);
  }
  return f;
}

it.each<readonly [string, number, string, () => Fusion]>([
  ["two sums over an axis of which each device has several rows, added", 2, "Allreduce 1", () => addedSums(two)],
  [
    "parts of 5 and of 6 rows, cut again",
    2,
    "AllToAllV 1",
    () =>
      moved(two, [10, 2], outer([0, 2], [1, 2, "DIDx"]), (y) => {
        inner(6)(y);
        y.outerSplit(1, 2).parallelize("DIDx");
      }),
  ],
  ["4 and 3 rows, then 5 and 2", 2, "AllToAllV 1", () => moved(two, [7, 2], outer([0, 2, "DIDx"]), inner(5, "DIDx"))],
  [
    "two dimensions that change places, a replicated one between them",
    18,
    "CollectivePermute 2",
    () =>
      moved(
        DeviceMesh.ofShape([3, 2, 3]),
        [3, 4],
        (x) => void x.axis(0).parallelize("DIDz"),
        (y) => void y.axis(0).parallelize("DIDx"),
      ),
  ],
  [
    "4 rows in three parts of two, then in two",
    6,
    "AllToAllV 1",
    () => moved(DeviceMesh.ofShape([2, 3]), [4, 2], outer([0, 3, "DIDx"]), outer([0, 2, "DIDy"])),
  ],
  [
    "three types on two indices, in chunks",
    8,
    "Allgather 4, AllToAll 4",
    () =>
      moved(
        DeviceMesh.ofShape([2, 2, 2]),
        [4, 2],
        outer([0, 2, "DIDx"], [2, 2, "DIDz"]),
        outer([0, 2, "Stream"], [2, 2], [3, 2, "DIDx"], [4, 2, "DIDy"], [5, 2, "DIDz"]),
      ),
  ],
  [
    "rows in chunks of shares, on the same devices in another order, columns cut as well",
    4,
    "AllToAllV 1",
    () => {
      const f = new Fusion();
      const x = f.input([12, 4]);
      const y = set(x);
      f.output(y);
      const [turned, square] = [
        [3, 1, 0, 2],
        [0, 1, 2, 3],
      ].map(
        ([a = 0, b = 0, c = 0, d = 0]) =>
          new DeviceMesh([
            [a, b],
            [c, d],
          ]),
      );
      if (turned === undefined || square === undefined) throw new Error("two meshes");
      x.setDeviceMesh(turned);
      y.setDeviceMesh(square);
      outer([0, 2, "DIDy"])(x);
      outer([0, 2, "DIDy"], [1, 3, "Stream"], [3, 2, "DIDx"])(y);
      return f;
    },
  ],
  [
    "a contracted axis with two types, one of them the weight's",
    4,
    "AllToAllV 1, Allreduce 2",
    () =>
      contracted(
        DeviceMesh.ofShape([2, 2]),
        outer([1, 2, "DIDx"], [2, 2, "DIDy"]),
        outer([0, 2, "DIDx"], [2, 2, "DIDy"]),
      ),
  ],
  [
    "a contracted axis that both operands cut, in other parts",
    2,
    "AllToAllV 1, Allreduce 1",
    () => contracted(two, outer([1, 2, "DIDx"]), outer([1, 2], [2, 2, "DIDx"])),
  ],
  [
    "no rows, in parts of two",
    2,
    "",
    () => {
      const f = new Fusion();
      const x = f.input([0, 4]);
      f.output(relu(x));
      x.setDeviceMesh(two);
      inner(2)(x);
      x.outerSplit(1, 2).parallelize("DIDx");
      return f;
    },
  ],
])("%s", async (_, devices, collectives, build) => {
  expect(collectivesOf(build(), devices)).toBe(collectives);
  await expectOracle(build(), { devices, machineAlone: true });
});

it("finds the splits of an axis of 2^40 indices without counting them", () => {
  const f = new Fusion();
  const x = f.input([2 ** 40, 2]);
  f.output(relu(x));
  x.setDeviceMesh(two);
  x.split(0, 2);
  x.axis(1).parallelize("DIDx");
  expect(lower(f).body.length).toBeGreaterThan(0);
});
