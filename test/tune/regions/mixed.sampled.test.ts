/**
 * Fusions cut into regions anywhere, each region with other lowering options and another schedule: the joined Program
 * verifies and has the oracle's result.
 */
import { DeviceMesh, DiagnosticError, Fusion, linear, set, type TensorView } from "@braid-compiler/braid";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type AnyCompilation, verified } from "../../../src/compile/compile.ts";
import { placedData } from "../../../src/compile/lower.ts";
import { outputsOf } from "../../../src/ir/ops/op.ts";
import { at } from "../../../src/support/invariant.ts";
import { copyLoops, libraryLoops, type ScheduleCandidate, serial } from "../../../src/tune/choose/candidates.ts";
import { compileRegions, withRegionsJoined } from "../../../src/tune/regions/compile-regions.ts";
import { cutRegions, findRegions } from "../../../src/tune/regions/split-regions.ts";
import { buildGraph, graphRecipes, indexingRecipes } from "../../properties/annotated-graphs.ts";
import { expectOracle } from "../../support/expect-oracle.ts";
import { buildFusion, recipes } from "../../support/random-fusion.ts";
import { shardedModels } from "../../support/sharded-models.ts";
import { draws, runs } from "../../support/suite.ts";
import { compareProofs } from "../../verify/classes/compare-proofs.ts";
import { gatherAndScatter, gatheredAgain, pairs } from "./pairs.ts";

const schedules: readonly ScheduleCandidate["schedule"][] = [
  { copyStream: "dedicated" },
  { computeStreams: 2, inPlace: true, ownLast: true, copyStream: "dedicated" },
  { computeStreams: 1, inPlace: true },
  { computeStreams: 1, splitChunks: 2, smMargin: 8, batchSignals: true },
  { computeStreams: 2, inPlace: true },
  { earlyGathers: true, computeStreams: 1, inPlace: false },
];

const candidates: readonly Pick<ScheduleCandidate, "lowering" | "schedule">[] = [
  serial,
  ...libraryLoops,
  ...copyLoops.flatMap(({ lowering }) => schedules.map((schedule) => ({ lowering, schedule }))),
];

/** `cuts`: whether a region begins at each op. Null if lowering refuses the Fusion, or a part of it. */
function mixed(
  fusion: Fusion,
  devices: number,
  cuts: readonly boolean[],
  picks: readonly number[],
): AnyCompilation | null {
  try {
    const placed = placedData(fusion, { insertReshardingAfter: true });
    const starts = placed.ops.flatMap((_, i) => (i === 0 || at(cuts, i % cuts.length) ? [i] : []));
    const regions = cutRegions(placed, starts);
    const chosen = regions.map((_, i) => at(candidates, at(picks, i % picks.length) % candidates.length));
    return verified(compileRegions({ placed, regions }, chosen, { devices, insertReshardingAfter: true }));
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

async function expectMixed(
  fusion: Fusion,
  devices: number,
  compilation: AnyCompilation,
  rounds = false,
  someUnbounded = false,
): Promise<void> {
  expect(compilation.report?.findings.filter(({ severity }) => severity === "error")).toEqual([]);
  await expectOracle(fusion, { devices, compilation, machineAlone: true, verify: "off", rounds, someUnbounded });
}

const picks = fc.array(fc.nat({ max: candidates.length - 1 }), { minLength: 1, maxLength: 6 });

it("any lowering and schedule of each region of a random Fusion", async () => {
  const counts = { quick: 10, long: 300 };
  let ran = 0;
  const cuts = fc.array(fc.boolean(), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(recipes, cuts, picks, async (recipe, cut, pick) => {
      const fusion = buildFusion(recipe);
      const compilation = mixed(fusion, recipe.devices, cut, pick);
      if (compilation === null) return;
      ran++;
      await expectMixed(fusion, recipe.devices, compilation);
    }),
    draws(counts),
  );
  expect(ran).toBeGreaterThan(runs(counts) / 4);
}, 240_000);

it("any lowering and schedule of each region of a random graph, also on a grid, and one verdict of both proofs", async () => {
  const counts = { quick: 4, long: 24 };
  let ran = 0;
  const cuts = fc.array(fc.boolean(), { minLength: 1, maxLength: 6 });
  const drawn = fc.oneof(graphRecipes, indexingRecipes);
  await fc.assert(
    fc.asyncProperty(drawn, cuts, picks, fc.boolean(), async (recipe, cut, pick, isJoined) => {
      const { fusion, devices } = buildGraph({ ...recipe, symbolic: false });
      const apart = mixed(fusion, devices, cut, pick);
      if (apart === null) return;
      ran++;
      const compilation = isJoined ? verified(withRegionsJoined(apart)) : apart;
      compareProofs(compilation.program);
      await expectMixed(fusion, devices, compilation, true, true);
    }),
    draws(counts),
  );
  expect(ran).toBeGreaterThan(runs(counts) / 2);
}, 240_000);

it("any lowering and schedule of each pair, and of a gather and a scatter", async () => {
  const counts = { quick: 3, long: 60 };
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.integer({ min: 2, max: 4 }), picks, async (isPairs, devices, pick) => {
      const fusion = isPairs ? pairs(devices, 4, [3, 2, 5, 2], "float") : gatherAndScatter(devices, 4, 3);
      const { ops } = fusion.data();
      const starts = ops.map(({ kind }) => kind === "Linear" || kind === "Matmul");
      const compilation = mixed(fusion, devices, starts, pick);
      expect(compilation, ops.flatMap(outputsOf).join()).not.toBeNull();
      if (compilation !== null) await expectMixed(fusion, devices, compilation);
    }),
    draws(counts),
  );
}, 120_000);

it("any lowering and schedule of a loop whose gather a later region reads", async () => {
  const counts = { quick: 3, long: 60 };
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 2, max: 4 }), picks, async (devices, pick) => {
      const fusion = gatheredAgain(devices, 4, 3);
      const found = findRegions(fusion, {});
      expect(found?.regions.map(({ ops }) => ops.map(({ kind }) => kind).join(" "))).toEqual([
        "Set Linear",
        "Matmul Reshape Permute Reshape Matmul",
      ]);
      if (found === null) return;
      const chosen = found.regions.map((_, i) => at(candidates, at(pick, i % pick.length)));
      const compilation = verified(compileRegions(found, chosen, { devices }));
      await expectMixed(fusion, devices, compilation);
    }),
    draws(counts),
  );
}, 120_000);

it("any lowering and schedule of each region of a sharded model, forward and backward", async () => {
  const counts = { quick: 3, long: 60 };
  const names = ["sequences, backward", "weights gathered, backward", "grid, backward"] as const;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), fc.integer({ min: 4, max: 7 }), picks, async (name, rows, pick) => {
      const { build, groups } = shardedModels[name];
      const fusion = build({ devices: 2, rows, hidden: 5, dtype: "float" });
      const found = findRegions(fusion, {});
      expect(found?.regions.length).toBeGreaterThan(1);
      if (found === null) return;
      const devices = 2 * groups;
      const chosen = found.regions.map((_, i) => at(candidates, at(pick, i % pick.length)));
      const compilation = verified(compileRegions(found, chosen, { devices }));
      await expectMixed(fusion, devices, compilation, true);
    }),
    draws(counts),
  );
}, 120_000);

it("signals that the only region with signals leaves out", async () => {
  const fusion = pairs(3, 8, [4, 6, 8, 10, 12], "float");
  const found = findRegions(fusion, {});
  if (found === null) throw new Error("no regions");
  const { placed, regions } = found;
  const [get] = copyLoops;
  if (get === undefined) throw new Error("no loop");
  const last = placed.ops.length - at(regions, 3).ops.length;
  const chosen = [{ lowering: get.lowering, schedule: { dropSignals: true } }, serial];
  const cut = { placed, regions: cutRegions(placed, [0, last]) };
  const compilation = verified(compileRegions(cut, chosen, { devices: 3 }));
  expect(compilation.program.slots.length).toBeLessThan(compilation.recorded.slots.length);
  await expectMixed(fusion, 3, compilation);
});

it("an output over an input that a later region reads", async () => {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  const sharded = (tensor: TensorView): TensorView => {
    tensor.setDeviceMesh(mesh);
    tensor.axis(0).parallelize("DIDx");
    return tensor;
  };
  const [x, state] = [sharded(f.input([2, 4, 6])), sharded(f.input([2, 4, 6]))];
  const layer = (input: TensorView): TensorView => {
    const y = linear(input, f.input([6, 6]));
    y.setDeviceMesh(mesh);
    y.axis(0).parallelize("Stream");
    return sharded(set(y));
  };
  f.output(layer(layer(x)), { alias: state });
  f.output(sharded(set(state)));
  const found = findRegions(f, {});
  expect(found?.regions).toHaveLength(2);
  if (found === null) return;
  for (const loop of copyLoops) {
    const chosen = [{ ...loop, schedule: {} }, serial];
    for (const each of [chosen, chosen.toReversed()])
      await expectMixed(f, 2, verified(compileRegions(found, each, { devices: 2 })));
  }
});
