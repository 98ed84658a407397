/**
 * What must hold for a graph: no finding of the verifier, the oracle's result, and the same bits on worker threads, in
 * any interleaving, on any number of streams, and under schedule rewrites.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type AnyCompilation,
  compile,
  DiagnosticError,
  type Fusion,
  MultiDeviceExecutor,
  type ScheduleOptions,
  type Tensor,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { loweringOf } from "../../src/compile/compile.ts";
import { placedData } from "../../src/compile/lower.ts";
import { sizesFromShapes } from "../../src/ir/sizes.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { cpuBackends } from "../support/cpu-backends.ts";
import {
  buildGraph,
  type Graph,
  type GraphRecipe,
  graphRecipes,
  type GraphSetting,
  graphSettings,
} from "./annotated-graphs.ts";
import { movedBytes } from "./moved-bytes.ts";

const indexing: ReadonlySet<string> = new Set(["Scan", "Argsort", "Gather", "IndexSelect", "ScatterAdd"]);

/** Rewrites that change no bit. */
const schedules: readonly ScheduleOptions[] = [
  { inPlace: true, ownLast: true },
  { computeStreams: 2 },
  { earlyGathers: true },
  { splitChunks: 2, copyStream: "dedicated" },
  { batchSignals: true, inPlace: true },
];

export interface Checked {
  /** The diagnostic's code and message if the graph is refused, otherwise null. */
  readonly refused: string | null;
  /** Whether its bytes were compared with those of the same shardings written by hand. */
  readonly compared: boolean;
}

/** Draws graphs and checks them. A refusal must be of a Stream that the graph's author put where no loop can run. */
export async function requireGraphs(
  draws: fc.Parameters<[GraphRecipe, GraphSetting, number]>,
  recipes: fc.Arbitrary<GraphRecipe> = graphRecipes,
): Promise<{ readonly ran: number; readonly compared: number }> {
  const counts = { ran: 0, compared: 0 };
  await fc.assert(
    fc.asyncProperty(recipes, graphSettings, fc.nat({ max: 1000 }), async (recipe, setting, seed) => {
      const { refused, compared } = await checkFusion(buildGraph(recipe), setting, seed);
      if (refused === null) counts.ran++;
      else assert.match(refused, /^stream-on-(?:reduction|cut|split)-axis: /u);
      if (compared) counts.compared++;
    }),
    draws,
  );
  return counts;
}

export async function checkFusion(
  { fusion, devices, shapes }: Graph,
  setting: GraphSetting,
  seed: number,
): Promise<Checked> {
  const data = fusion.data();
  const inputs = data.inputs.map((id) => at(data.tensors, id));
  const sizes = sizesFromShapes(inputs, shapes);
  const compiled = compiledOrRefused(fusion, { ...setting, devices, sizes });
  if (typeof compiled === "string") return { refused: compiled, compared: false };
  const findings = compiled.report?.findings.filter(({ severity }) => severity === "error") ?? [];
  assert.deepEqual(
    findings.map(({ code, message }) => `${code}: ${message}`),
    [],
  );
  const { accumulate = false, insertReshardingAfter = false } = setting;
  const { derived, annotated } = movedBytes(fusion, devices, sizes, { accumulate, insertReshardingAfter });
  // A sum of n shares in ring order is counted in fractions. Sorts and indices along a cut axis may move more than
  // annotations would.
  const isCompared = annotated !== null && !data.ops.some(({ kind }) => indexing.has(kind));
  if (isCompared) assert.ok(derived <= annotated + 1e-6, `${derived} bytes move instead of ${annotated}`);
  const values = randomInputs(
    inputs.map(({ dtype }, i) => ({ dtype, shape: at(shapes, i) })),
    createRandom(seed),
    "uniform",
  );
  const { outputs, bounds } = evaluateFusion(placedData(fusion, loweringOf({ ...setting, devices })), values, sizes);
  const run = (
    source: Fusion | AnyCompilation,
    options: Omit<GraphSetting, "streams"> & { streams?: number; schedule?: ScheduleOptions },
    on = at(cpuBackends, 0),
  ): Promise<readonly Tensor[]> => runTwice(source, { ...setting, ...options, devices, on }, values);
  const expected = await run(fusion, {});
  outputs.forEach((wanted, i) => {
    const actual = at(expected, i);
    assert.deepEqual(actual.shape, wanted.shape);
    const comparison = compare(actual, wanted, at(bounds, i));
    assert.equal(comparison.firstBad, null, JSON.stringify(comparison));
  });
  const inOrder = createCpuBackend({
    interleaving: { kind: "seed", seed },
    queues: seed % 2 === 0 ? "streams" : "ranks",
    transfers: seed % 3 === 0 ? "eager" : "synchronous",
  });
  assert.deepEqual(await run(fusion, {}, inOrder), expected);
  assert.deepEqual(await run(fusion, {}, at(cpuBackends, 2)), expected);
  assert.deepEqual(await run(fusion, { streams: 1 + (seed % 4), schedule: at(schedules, seed % 4) }), expected);
  return { refused: null, compared: isCompared };
}

function compiledOrRefused(fusion: Fusion, options: Parameters<typeof compile>[1]): AnyCompilation | string {
  try {
    return compile(fusion, options);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const [first] = error.diagnostics;
    if (first === undefined || error.diagnostics.length > 1) throw error;
    return `${first.code}: ${first.message}`;
  }
}

/** The second run finds slots and temporaries as the first has left them. */
async function runTwice(
  source: Fusion | AnyCompilation,
  options: Parameters<typeof MultiDeviceExecutor.create>[1] & { readonly localRanks?: never },
  values: readonly Tensor[],
): Promise<readonly Tensor[]> {
  const executor = await MultiDeviceExecutor.create(source, options);
  try {
    await executor.run(values);
    return await executor.run(values);
  } finally {
    await executor.close();
  }
}
