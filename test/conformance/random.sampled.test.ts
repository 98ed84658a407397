/** Random numbers have the oracle's bits under every sharding, in chunks, and on every back end. */
import { expect, it } from "vitest";
import {
  cast,
  DeviceMesh,
  dropout,
  Fusion,
  linear,
  lower,
  randomBits,
  relu,
  type TensorView,
  uniform,
} from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { placements } from "../support/placements.ts";
import { expectRoundTrip } from "../support/round-trip.ts";
import { runs } from "../support/suite.ts";

function program(rows: number, columns: number, place: (x: TensorView, y: TensorView) => void): Fusion {
  const f = new Fusion();
  const [x, seed] = [f.input([rows, columns]), f.input([], "int64")];
  const y = relu(dropout(x, 0.3, seed));
  for (const output of [y, relu(randomBits(seed, [rows, columns])), cast(uniform(seed, [columns]), "double")]) {
    f.output(output);
  }
  place(x, y);
  for (const output of f.outputs.slice(1)) if (x.mesh !== null) output.setDeviceMesh(x.mesh);
  return f;
}

it("of symbolic extents, an index of an axis per device or iteration", async () => {
  const f = new Fusion();
  const [x, seed] = [f.input([null, null, null]), f.input([], "int64")];
  const y = relu(dropout(x, 0.5, seed));
  f.output(y);
  x.setDeviceMesh(DeviceMesh.range(2)).axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  const sizes = new Map([
    ["i0", 3],
    ["i2", 2],
    ["i3", 5],
  ]);
  await expectOracle(f, { devices: 2, sizes, machineAlone: true });
});

it("between the GEMMs of an MLP, in the loop of both", async () => {
  const f = new Fusion();
  const [x, up, down, seed] = [f.input([12, 6]), f.input([8, 6]), f.input([6, 8]), f.input([], "int64")];
  const hidden = dropout(relu(linear(x, up)), 0.5, seed);
  const y = dropout(linear(hidden, down), 0.5, seed);
  f.output(y);
  for (const view of [x, up, down, y]) view.setDeviceMesh(DeviceMesh.range(2));
  for (const view of [x, y]) {
    view.outerSplit(0, 3);
    view.outerSplit(1, 2).parallelize("DIDx");
  }
  up.outerSplit(0, 2).parallelize("DIDx");
  down.outerSplit(1, 2).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  expect(collectivesOf(f, 2)).toBe("Allgather 1, ReduceScatter 1");
  // The vectors of indices are made before the loop, and their chunks are read where they lie.
  const { body } = lower(f);
  expect(body.flatMap((each) => (each.kind === "Iota" || each.kind === "PostOnStream" ? [each.kind] : []))).toEqual(
    Array.from({ length: 4 }, () => "Iota"),
  );
  const inLoops = body.flatMap((each) => (each.kind === "ForLoop" ? each.body : []));
  const work = ["Communication", "Linear", "PostOnStream"];
  expect(inLoops.map(({ kind }) => kind).filter((kind) => work.includes(kind))).toEqual([
    "Communication",
    "Linear",
    "PostOnStream",
    "Linear",
    "Communication",
    "PostOnStream",
  ]);
  await expectOracle(f, { devices: 2, seed: 3, machineAlone: true });
});

const some = placements.filter((_, i) => i % runs({ quick: 3, long: 1 }) === 0);

it.each(some)("%s", async (_, devices, place) => {
  const f = program(13, 9, place);
  expect(collectivesOf(f, devices)).toBe("");
  expectRoundTrip(lower(f, { rank: 0 }), [{ rank: 0 }]);
  await expectOracle(f, { devices, machineAlone: devices !== 2, seed: 11 });
});
