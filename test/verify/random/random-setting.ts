/**
 * Random Fusions under random options, lowered and recorded for every rank: what the verifier must let pass. Half are
 * chains of random ops, half loops over the devices, so that every idiom of communication is common.
 */
import fc from "fast-check";
import { type CommandList, DiagnosticError, type Fusion, lower, record } from "@braid-compiler/braid";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import { at, unreachable } from "../../../src/support/invariant.ts";
import { schedules } from "../../support/point-to-point-schedules.ts";
import { buildFusion, type Recipe, recipes } from "../../support/random-fusion.ts";
import {
  buildPointToPoint,
  type PointToPointRecipe,
  pointToPointRecipes,
} from "../../support/random-point-to-point.ts";

type Source =
  { readonly kind: "ops"; readonly recipe: Recipe } | { readonly kind: "loop"; readonly recipe: PointToPointRecipe };

export interface Setting {
  readonly source: Source;
  readonly streams: number;
  readonly options: Partial<LoweringOptions>;
}

const options: fc.Arbitrary<Partial<LoweringOptions>> = fc
  .record({
    schedule: fc.constantFrom(...Object.values(schedules)),
    interStreamSync: fc.boolean(),
    insertReshardingAfter: fc.boolean(),
    deallocate: fc.boolean(),
    shrink: fc.boolean(),
  })
  .map(({ schedule, ...switches }) => ({ ...schedule, ...switches }));

function settingsOf(
  ops: fc.Arbitrary<Recipe>,
  loops: fc.Arbitrary<PointToPointRecipe>,
  mostStreams: number,
): fc.Arbitrary<Setting> {
  return fc.record({
    source: fc.oneof(
      ops.map((recipe): Source => ({ kind: "ops", recipe })),
      loops.map((recipe): Source => ({ kind: "loop", recipe })),
    ),
    streams: fc.integer({ min: 1, max: mostStreams }),
    options,
  });
}

/** 1 to 8 devices, 1 to 8 streams. */
export const settings = settingsOf(recipes, pointToPointRecipes, 8);

/** 1 to 3 devices, 1 to 3 streams: the sizes that the judge can handle. */
export const smallSettings = settingsOf(
  recipes.map((recipe) => ({ ...recipe, devices: 1 + (recipe.devices % 3) })),
  pointToPointRecipes.map((recipe) => ({ ...recipe, devices: someOf(recipe.devices.filter((device) => device < 3)) })),
  3,
);

function someOf(devices: readonly number[]): readonly number[] {
  return devices.length === 0 ? [0, 2, 1] : devices;
}

/** The lists of all ranks; null if lowering rejects the Fusion with a diagnostic. */
export function recordSetting({ source, streams, options: given }: Setting): readonly CommandList[] | null {
  const { fusion, world } = fusionOf(source);
  const { protocol = "get" } = given;
  try {
    return Array.from({ length: world }, (_, rank) =>
      record(lower(fusion, { ...given, rank }), { rank, streams, protocol }),
    );
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function fusionOf(source: Source): { readonly fusion: Fusion; readonly world: number } {
  switch (source.kind) {
    case "ops":
      return { fusion: buildFusion(source.recipe), world: source.recipe.devices };
    case "loop": {
      const { devices } = source.recipe;
      return {
        fusion: buildPointToPoint(source.recipe),
        world: 1 + devices.reduce((a, b) => Math.max(a, b), at(devices, 0)),
      };
    }
    default:
      return unreachable(source);
  }
}
