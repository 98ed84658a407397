/** Plans of random graphs, with state and gradients, in random forms and under random rewrites. */
import fc from "fast-check";
import {
  add,
  type Compilation,
  compile,
  type CompileOptions,
  type DeviceMesh,
  DiagnosticError,
  type DType,
  type Fusion,
  gradients,
  type TensorView,
} from "@braid-compiler/braid";
import { placedData } from "../../src/compile/lower.ts";
import { loweringOf } from "../../src/compile/compile.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { type Sizes, sizesFromShapes } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import { buildGraph, type GraphRecipe, graphRecipes, indexingRecipes } from "../properties/annotated-graphs.ts";

export interface DrawnPlan {
  readonly compilation: Compilation;
  /** As the program lies on the devices. */
  readonly placed: FusionData;
  readonly sizes: Sizes;
}

const rewrites = fc.record(
  {
    dropSignals: fc.boolean(),
    inPlace: fc.boolean(),
    ownLast: fc.boolean(),
    splitChunks: fc.integer({ min: 1, max: 3 }),
    earlyGathers: fc.boolean(),
    gemmSums: fc.boolean(),
    computeStreams: fc.integer({ min: 1, max: 3 }),
    batchSignals: fc.boolean(),
    smMargin: fc.integer({ min: 1, max: 8 }),
    copyStream: fc.constantFrom("dedicated", "inline"),
  },
  { requiredKeys: [] },
);

const forms = fc.record({
  protocol: fc.constantFrom("get", "put"),
  p2p: fc.constantFrom("rotated", "broadcast"),
  shrink: fc.boolean(),
  accumulate: fc.boolean(),
  insertReshardingAfter: fc.boolean(),
  overlap: fc.boolean(),
  deviceLoops: fc.boolean(),
  streams: fc.integer({ min: 1, max: 4 }),
  schedule: rewrites,
});

/** Graphs of at most 4 devices and few rows. */
const recipes = fc
  .oneof(graphRecipes, indexingRecipes)
  .filter(({ grid, shape }) => grid <= 5 && shape.every((extent) => extent < 50));

const draws = fc.tuple(recipes, forms, fc.constantFrom<DType>("int", "int64"), fc.boolean());

/** As many as `count`; a draw that no plan can hold counts for none. */
export function drawnPlans(count: number, seed: number): readonly DrawnPlan[] {
  const found: DrawnPlan[] = [];
  for (let i = 0; found.length < count; i++) {
    const [draw] = fc.sample(draws, { numRuns: 1, seed: 1000 * seed + i });
    const plan = draw === undefined ? null : drawnPlan(...draw);
    if (plan !== null) found.push(plan);
  }
  return found;
}

type Form = Omit<CompileOptions, "devices" | "verify">;

function drawnPlan(recipe: GraphRecipe, form: Form, dtype: DType, isTrained: boolean): DrawnPlan | null {
  const { fusion, devices, shapes } = buildGraph(recipe);
  const data = fusion.data();
  const sizes = sizesFromShapes(
    data.inputs.map((id) => at(data.tensors, id)),
    shapes,
  );
  const { mesh } = at(fusion.inputs, 0);
  addState(fusion, dtype, mesh);
  const options = { devices, on: "cuda", backend: "cuda", attention: "ops", ...form, sizes } as const;
  try {
    if (isTrained) addGradients(fusion);
    const compilation = compile(fusion, options);
    return { compilation, placed: placedData(fusion, loweringOf(options)), sizes };
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** Whole numbers, which stay exact from run to run. */
function addState(fusion: Fusion, dtype: DType, mesh: DeviceMesh | null): void {
  const [state, step] = [fusion.input([5, 3], dtype), fusion.input([5, 3], dtype)];
  fusion.output(add(state, step), { alias: state });
  if (mesh === null) return;
  for (const tensor of [state, step]) {
    tensor.setDeviceMesh(mesh);
    tensor.outerSplit(0, mesh.size("DIDx")).parallelize("DIDx");
  }
}

function addGradients(fusion: Fusion): void {
  const isFloat = ({ dtype }: TensorView): boolean => dtype === "float";
  const of = fusion.outputs.find(isFloat);
  if (of === undefined) return;
  const wrt = fusion.inputs.filter(isFloat);
  const cotangent = fusion.input(of.extents, of.dtype);
  if (wrt[0]?.mesh !== undefined && wrt[0].mesh !== null) cotangent.setDeviceMesh(wrt[0].mesh);
  for (const gradient of gradients(fusion, { of: [of], cotangents: [cotangent], wrt })) {
    if (gradient !== null && !fusion.outputs.includes(gradient)) fusion.output(gradient);
  }
}
