/** nvFuser's tests/cpp/test_sharding.cpp: how shardings spread. */
import { expect, it } from "vitest";
import { add, DeviceMesh, Fusion, linear, lower, mul, reshape, set, uniform } from "@braid-compiler/braid";
import { walk } from "../../src/host/traverse.ts";
import { propagated } from "../support/propagated.ts";
import { cut, expectExchange, outputs, place, whole } from "./setup.ts";

const two = DeviceMesh.range(2);
const three = DeviceMesh.range(3);
const grid = new DeviceMesh([
  [0, 1, 2],
  [3, 4, 5],
]);

it("PropagateSharding", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([3, 5, 3]), f.input([3, 5, 3])];
  const c = add(a, b);
  outputs(f, c);
  place(three, a, b);
  whole(a, 0);
  whole(b, 2);
  const text = propagated(f);
  expect(text(c)).toBe("x3 5 3");
  expect(text(c)).toBe(text(a));
  await expectExchange(f, 3, "AllToAll 1");
});

it("ResidualAdd", async () => {
  const f = new Fusion();
  const [a, seed] = [f.input([4, 3]), f.input([], "int64")];
  // Random numbers have no operand of their shape: their sharding comes back from d.
  const c = uniform(seed, [4, 3]);
  const d = add(a, c);
  outputs(f, c, d);
  place(two, a);
  cut(a, 0, 2);
  const text = propagated(f);
  expect(text(c)).toBe("x2 2 3");
  expect(text(d)).toBe("x2 2 3");
  await expectExchange(f, 2, "");
});

it("PropagateParallelTypeOnce", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([4, 6]), f.input([4, 6])];
  const c = add(a, b);
  outputs(f, c);
  place(two, a, b);
  cut(a, 0, 2);
  cut(b, 1, 2);
  expect(propagated(f)(c)).toBe("x2 2 6");
  await expectExchange(f, 2, "AllToAll 1");
});

it("ReductionDIDxIsIgnored", async () => {
  const f = new Fusion();
  const [x, w, y] = [f.input([6, 8]), f.input([4, 8]), f.input([6, 4])];
  const u = linear(x, w);
  const v = add(y, u);
  outputs(f, v);
  place(two, x, w, y);
  cut(x, 1, 2);
  cut(w, 1, 2);
  cut(y, 1, 2);
  const text = propagated(f);
  expect(text(u)).toBe("6 x2 2 rx2 r4");
  expect(text(v)).toBe("6 x2 2");
  await expectExchange(f, 2, "ReduceScatter 1");
});

it("ShardedNonDivisibleReshape", async () => {
  const f = new Fusion();
  const x = f.input([6]);
  const y = reshape(x, [3, 2]);
  outputs(f, y);
  place(two, x);
  cut(x, 0, 2);
  expect(propagated(f)(y)).toBe("3 2");
  await expectExchange(f, 2, "Allgather 1");
});

it("ShardedInnerReshape", async () => {
  const f = new Fusion();
  const x = f.input([3, 10]);
  const y = reshape(x, [30]);
  outputs(f, y);
  place(two, x);
  cut(x, 1, 2);
  expect(propagated(f)(y)).toBe("30");
  await expectExchange(f, 2, "Allgather 1");
});

it("ShardedReshapeWithIndependentSplit", async () => {
  const f = new Fusion();
  const x = f.input([9, 5, 14, 9]);
  const y = reshape(x, [45, 126]);
  outputs(f, y);
  place(grid, x);
  cut(x, 0, 3);
  cut(x, 3, 2, "DIDy");
  expect(propagated(f)(y)).toBe("x3 15 y2 63");
  await expectExchange(f, 6, "");
});

it("PropagationDoesNotOverwrite", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([6, 4]), f.input([6, 4])];
  const c = set(b);
  const d = add(a, c);
  outputs(f, d);
  place(grid, a, b);
  cut(a, 0, 3);
  cut(b, 0, 2, "DIDy");
  const text = propagated(f);
  expect([a, b, c, d].map(text)).toEqual(["x3 2 4", "y2 3 4", "y2 3 4", "x3 2 4"]);
  await expectExchange(f, 6, "AllToAllV 1");
});

it("BackpropagateToShardedTvs", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([6, 4]), f.input([6, 4])];
  const c = set(b);
  const d = add(a, c);
  outputs(f, d);
  place(grid, a, b);
  cut(a, 0, 3);
  cut(b, 1, 2, "DIDy");
  const text = propagated(f);
  expect([c, d].map(text)).toEqual(["x3 2 y2 2", "x3 2 y2 2"]);
  await expectExchange(f, 6, "");
});

it("ReorderParallelizedToFront", async () => {
  // Braid keeps the order of a tensor's axes: a loop runs over the Stream axis wherever it stands.
  const f = new Fusion();
  const x = f.input([4, 6]);
  const y = mul(x, 2);
  outputs(f, y);
  place(two, x);
  cut(x, 0, 2);
  cut(x, 2, 3, "Stream");
  expect(propagated(f)(x)).toBe("x2 2 s3 2");
  for (const rank of [0, 1]) {
    const { body } = lower(f, { rank });
    const stops = walk(body).flatMap((each) => (each.kind === "ForLoop" ? [each.stop] : []));
    expect(stops.length).toBeGreaterThan(0);
    for (const stop of stops) expect(stop).toEqual({ kind: "constant", value: 3 });
  }
  await expectExchange(f, 2, "");
});
