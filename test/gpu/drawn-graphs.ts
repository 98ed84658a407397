/**
 * Random graphs for the GPU self-test, each drawn from its number: those of test/properties, in three dtypes, half of
 * them with gradients, in any idiom and schedule.
 */
import fc from "fast-check";
import { loweringOf } from "../../src/compile/compile.ts";
import { placedData } from "../../src/compile/lower.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { ScheduleOptions } from "../../src/schedule/schedule.ts";
import { sizesFromShapes } from "../../src/ir/sizes.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import {
  buildGraph,
  type Graph,
  gridsOf,
  graphRecipes,
  type GraphSetting,
  graphSettings,
  indexingRecipes,
} from "../properties/annotated-graphs.ts";
import { type Expectation, expectationsFrom } from "./expectation.ts";

export interface DrawnGraph {
  readonly fusion: Graph["fusion"];
  readonly options: GraphSetting & { readonly schedule: ScheduleOptions };
  readonly expectations: () => readonly Expectation[];
}

const dtypes: readonly DType[] = ["bfloat16", "half", "float"];

const schedules: readonly ScheduleOptions[] = [
  {},
  { inPlace: true, ownLast: true },
  { computeStreams: 2 },
  { earlyGathers: true, smMargin: 8 },
  { splitChunks: 2, copyStream: "dedicated" },
  { batchSignals: true, inPlace: true },
];

export function drawnGraph(seed: number, devices: number): DrawnGraph {
  const draws = fc.record({
    recipe: fc.oneof(graphRecipes, indexingRecipes),
    setting: graphSettings,
    grid: fc.constantFrom(...gridsOf(devices)),
    schedule: fc.constantFrom(...schedules),
    dtype: fc.constantFrom(...dtypes),
    withGradients: fc.boolean(),
  });
  const { recipe, setting, grid, schedule, dtype, withGradients } = at(fc.sample(draws, { seed, numRuns: 1 }), 0);
  const build = (gradients: boolean): Graph =>
    buildGraph({ ...recipe, grid, symbolic: recipe.symbolic && !gradients }, { dtype, withGradients: gradients });
  const { fusion, shapes } = ifDifferentiable(withGradients, build);
  return {
    fusion,
    options: { ...setting, schedule },
    expectations: () => {
      const { tensors, inputs: ids } = fusion.data();
      const given = ids.map((id) => at(tensors, id));
      const sizes = sizesFromShapes(given, shapes);
      // Where the sums of devices are rounded, and so the bounds, depends on the placing.
      const placed = placedData(fusion, loweringOf({ ...setting, devices }));
      return expectationsFrom({
        inputs: given.map(({ dtype }, i) => ({ dtype, shape: at(shapes, i) })),
        evaluate: (inputs) => evaluateFusion(placed, inputs, sizes),
      });
    },
  };
}

/** Whether the graph's author put Stream where no loop can run. */
export function isRefusedStream({ diagnostics }: DiagnosticError): boolean {
  return diagnostics.every(({ code }) => code.startsWith("stream-on-"));
}

function ifDifferentiable(withGradients: boolean, build: (gradients: boolean) => Graph): Graph {
  try {
    return build(withGradients);
  } catch (error) {
    if (!(error instanceof DiagnosticError) || !withGradients) throw error;
    return build(false);
  }
}
