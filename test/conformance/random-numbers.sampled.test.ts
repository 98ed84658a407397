/**
 * Random numbers and indices of whole tensors, under random shardings, chunks and schedules: always the oracle's bits,
 * and never a communication.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  add,
  broadcast,
  cast,
  DeviceMesh,
  dropout,
  Fusion,
  iota,
  relu,
  type TensorView,
  uniform,
} from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { draws } from "../support/suite.ts";

type Cut = "none" | "outer" | "inner" | "in runs";

interface Recipe {
  readonly shape: readonly [number, number];
  readonly devices: readonly [number, number];
  readonly cuts: readonly [Cut, Cut];
  readonly chunks: { readonly axis: 0 | 1; readonly parts: number; readonly inside: boolean } | null;
  readonly schedule: { readonly inPlace: boolean; readonly computeStreams?: number };
  readonly p: number;
  readonly seed: number;
}

const cut = fc.constantFrom<Cut>("none", "outer", "inner", "in runs");
const recipes: fc.Arbitrary<Recipe> = fc.record({
  shape: fc.tuple(fc.integer({ min: 1, max: 11 }), fc.integer({ min: 1, max: 11 })),
  devices: fc.tuple(fc.constantFrom(1, 2, 3), fc.constantFrom(1, 2)),
  cuts: fc.tuple(cut, cut),
  chunks: fc.option(
    fc.record({ axis: fc.constantFrom(0, 1), parts: fc.integer({ min: 1, max: 4 }), inside: fc.boolean() }),
  ),
  schedule: fc.record({ inPlace: fc.boolean(), computeStreams: fc.constantFrom(1, 2) }, { requiredKeys: ["inPlace"] }),
  p: fc.constantFrom(0, 0.1, 0.5, 1),
  seed: fc.nat(),
});

const types = ["DIDy", "DIDx"] as const;

/** Cuts axis `axis` of the logical domain, which begins at `position` of the loop domain. Returns its loop axes. */
function shard(view: TensorView, position: number, kind: Cut, devices: number, type: "DIDx" | "DIDy"): number {
  switch (kind) {
    case "none":
      return 1;
    case "outer":
      view.outerSplit(position, devices).parallelize(type);
      return 2;
    case "inner":
      view.split(position, devices);
      view.axis(position + 1).parallelize(type);
      return 2;
    case "in runs":
      view.outerSplit(position, 3);
      view.outerSplit(position + 1, devices).parallelize(type);
      return 3;
  }
}

function place(view: TensorView, { devices, cuts, chunks }: Recipe, chunked: boolean): void {
  const [rows, columns] = devices;
  view.setDeviceMesh(
    new DeviceMesh(Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (__, j) => i * columns + j))),
  );
  // From the last axis on, so that positions of earlier axes stay.
  for (const axis of [1, 0] as const) {
    const type = types[axis];
    const own = chunked && chunks?.axis === axis ? chunks : null;
    if (own === null) {
      shard(view, axis, cuts[axis], devices[axis], type);
    } else if (own.inside) {
      // [DID, Stream, rest]
      view.outerSplit(axis, devices[axis]).parallelize(type);
      view.outerSplit(axis + 1, own.parts).parallelize("Stream");
    } else {
      // [Stream, DID, rest]
      view.outerSplit(axis, own.parts).parallelize("Stream");
      view.outerSplit(axis + 1, devices[axis]).parallelize(type);
    }
  }
}

function build(recipe: Recipe): Fusion {
  const f = new Fusion();
  const [x, seed] = [f.input(recipe.shape, "double"), f.input([], "int64")];
  const dropped = dropout(x, recipe.p, seed);
  const random = relu(cast(uniform(seed, recipe.shape), "double"));
  const rows = broadcast(iota(f, recipe.shape[0], { start: -3, step: 7 }), [false, true]);
  const columns = broadcast(iota(f, recipe.shape[1], { dtype: "int" }), [true, false]);
  const counted = relu(add(rows, columns));
  for (const output of [relu(dropped), random, counted]) {
    f.output(output);
    place(output, recipe, true);
  }
  // The input lies where its first reader needs it.
  const { chunks } = recipe;
  place(x, chunks === null ? recipe : { ...recipe, chunks: { ...chunks } }, chunks !== null);
  for (let axis = 0; axis < x.nDims; axis++) {
    if (x.axis(axis).parallelType === "Stream") x.axis(axis).parallelize("Serial");
  }
  return f;
}

it("have the oracle's bits", async () => {
  await fc.assert(
    fc.asyncProperty(recipes, async (recipe) => {
      const devices = recipe.devices[0] * recipe.devices[1];
      expect(collectivesOf(build(recipe), devices)).toBe("");
      const { schedule, seed } = recipe;
      await expectOracle(build(recipe), { devices, seed, schedule, machineAlone: true });
    }),
    draws({ quick: 4, long: 150 }),
  );
});
