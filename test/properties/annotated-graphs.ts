/**
 * Random graphs of which only inputs, and one chunked axis, are annotated. A recipe is plain numbers, so that
 * fast-check can shrink it; `buildGraph` reads them modulo what is possible, so that every recipe makes a Fusion.
 */
import fc from "fast-check";
import {
  DeviceMesh,
  type DType,
  Fusion,
  gradients,
  type LowerOptions,
  type ParallelType,
  type TensorView,
} from "../../src/index.ts";
import { at } from "../../src/support/invariant.ts";
import { type Grown, grow, type GraphStep } from "./graph-ops.ts";

export interface InputAnnotation {
  /** The axis on DIDx, and on DIDy of a mesh with two axes; none beyond the tensor's axes. */
  readonly x: number;
  readonly y: number;
  /** Without a mesh: propagation must find one. The first input always has it. */
  readonly bare: boolean;
}

export interface GraphRecipe {
  /** Index into `grids`. */
  readonly grid: number;
  /** Extents of the first input. */
  readonly shape: readonly number[];
  /** Whether axis 0 of the first input, and of inputs of its shape, is known only at run time. */
  readonly symbolic: boolean;
  readonly inputs: readonly InputAnnotation[];
  readonly steps: readonly GraphStep[];
  readonly stream: StreamAnnotation | null;
}

export interface StreamAnnotation {
  /** Counted over all tensors, the last one first, and over the axes of its loop domain. */
  readonly tensor: number;
  readonly axis: number;
  readonly parts: number;
  /** Whether devices share the axis, too: each chunk (inside), or chunks are of their shares (outside). */
  readonly nest: "none" | "inside" | "outside";
}

export interface Graph {
  readonly fusion: Fusion;
  readonly devices: number;
  /** Of the inputs. */
  readonly shapes: readonly (readonly number[])[];
}

/** None, one or two axes of devices. */
const grids: readonly (readonly number[])[] = [
  [2],
  [],
  [3],
  [2, 2],
  [1],
  [4],
  [5],
  [2, 3],
  [8],
  [3, 2],
  [2, 4],
  [1, 3],
  [7],
];

/** Which of the grids have as many devices. */
export const gridsOf = (devices: number): readonly number[] =>
  [...grids.keys()].filter((grid) => at(grids, grid).reduce((product, size) => product * size, 1) === devices);

const small = fc.nat({ max: 7 });

/** Mostly small, and often not a multiple of the devices. */
const extent = fc.constantFrom(4, 8, 6, 7, 5, 1, 3, 13, 0, 12, 2);

const recipesOf = (op: fc.Arbitrary<number>): fc.Arbitrary<GraphRecipe> =>
  fc.record({
    grid: fc.nat({ max: grids.length - 1 }),
    shape: fc
      .tuple(fc.oneof({ weight: 8, arbitrary: extent }, fc.constantFrom(100, 1000)), fc.array(extent, { maxLength: 2 }))
      .map(([rows, rest]) => (rest.length === 0 ? [rows, 4] : [rows, ...rest])),
    symbolic: fc.boolean(),
    inputs: fc.array(fc.record({ x: fc.nat({ max: 3 }), y: fc.nat({ max: 3 }), bare: fc.boolean() }), {
      minLength: 1,
      maxLength: 5,
    }),
    steps: fc.array(fc.record({ op, operand: small, other: small, size: small }), {
      minLength: 1,
      maxLength: 6,
    }),
    stream: fc.option(
      fc.record({
        tensor: small,
        axis: small,
        parts: fc.integer({ min: 1, max: 8 }),
        nest: fc.constantFrom("none", "inside", "outside"),
      }),
    ),
  });

/** The ops of a transformer, and one number for a unary op. */
export const graphRecipes = recipesOf(fc.nat({ max: 15 }).map((op) => (op === 15 ? Infinity : op)));

/** Half of them sort, scan, index, or attend with masks. */
export const indexingRecipes = recipesOf(fc.nat({ max: 26 }));

/** On 2 x 3, 3 x 2 and 2 x 4 devices. Where the inputs are cut along DIDx alone, ranks that differ along DIDy do the same. */
export const twoAxisRecipes: fc.Arbitrary<GraphRecipe> = fc
  .tuple(graphRecipes, fc.constantFrom(7, 9, 10), fc.boolean())
  .map(([recipe, grid, isCut]) => {
    const inputs = recipe.inputs.map((input) => (isCut ? input : { ...input, y: Infinity }));
    return { ...recipe, grid, inputs, symbolic: false };
  });

export interface GraphSetting extends Pick<
  LowerOptions,
  "backend" | "p2p" | "protocol" | "shrink" | "accumulate" | "insertReshardingAfter"
> {
  readonly streams: number;
}

export const graphSettings: fc.Arbitrary<GraphSetting> = fc
  .record({
    form: fc.constantFrom<GraphSetting>(
      ...(["rotated", "linear", "broadcast"] as const).map((p2p) => ({ backend: "nccl" as const, p2p, streams: 0 })),
      ...(["get", "put"] as const).map((protocol) => ({ backend: "cuda" as const, protocol, streams: 0 })),
    ),
    shrink: fc.boolean(),
    accumulate: fc.boolean(),
    insertReshardingAfter: fc.boolean(),
    streams: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ form, ...rest }) => ({ ...form, ...rest }));

export interface GraphForm {
  /** Of the first input. */
  readonly dtype?: DType;
  /** Whether the gradients of all outputs are outputs too, or throws `not-differentiable`. */
  readonly withGradients?: boolean;
}

export function buildGraph(
  { grid, shape, symbolic, inputs, steps, stream }: GraphRecipe,
  { dtype = "float", withGradients = false }: GraphForm = {},
): Graph {
  const sizes = grids[grid] ?? [];
  const devices = sizes.reduce((product, size) => product * size, 1);
  const fusion = new Fusion();
  const forward = grow(fusion, shape, symbolic, steps, dtype);
  const grown = withGradients ? differentiated(fusion, forward) : forward;
  const mesh = sizes.length === 0 ? null : meshOf(sizes);
  const levels = new Map<TensorView, Map<number, Level[]>>();
  const levelsAt = (tensor: TensorView, axis: number): Level[] => {
    const ofTensor = levels.get(tensor) ?? new Map<number, Level[]>();
    levels.set(tensor, ofTensor);
    const ofAxis = ofTensor.get(axis) ?? [];
    ofTensor.set(axis, ofAxis);
    return ofAxis;
  };
  if (mesh !== null) {
    grown.inputs.forEach((tensor, i) => {
      const { x, y, bare } = inputs[i % inputs.length] ?? { x: 3, y: 3, bare: false };
      if (bare && i > 0) return;
      tensor.setDeviceMesh(mesh);
      if (mesh.hasAxis("DIDy") && y < tensor.nDims)
        levelsAt(tensor, y).push({ type: "DIDy", parts: mesh.size("DIDy") });
      if (x < tensor.nDims) levelsAt(tensor, x).push({ type: "DIDx", parts: mesh.size("DIDx") });
    });
  }
  if (stream !== null) annotateStream(stream, grown, mesh, levelsAt);
  for (const [tensor, axes] of levels) {
    // From the last axis, so that splits move no axis that is still to come.
    for (const [axis, parts] of [...axes].toSorted(([a], [b]) => b - a)) {
      parts.forEach((level, i) => tensor.outerSplit(axis + i, level.parts).parallelize(level.type));
    }
  }
  return { fusion, devices, shapes: grown.inputs.map((tensor) => grown.shapes.get(tensor) ?? []) };
}

/** With a cotangent as an input for each output, and the gradients of all inputs of floats as further outputs. */
function differentiated(fusion: Fusion, { inputs, outputs, shapes, made }: Grown): Grown {
  const cotangents = outputs.map((tensor) => fusion.input(shapes.get(tensor) ?? [], tensor.dtype));
  const wrt = inputs.filter(({ dtype }) => dtype !== "int64" && dtype !== "bool");
  for (const gradient of gradients(fusion, { of: outputs, cotangents, wrt })) {
    if (gradient !== null) fusion.output(gradient);
  }
  const extents = cotangents.map((tensor, i) => [tensor, shapes.get(at(outputs, i)) ?? []] as const);
  return { inputs: [...inputs, ...cotangents], outputs, made, shapes: new Map([...shapes, ...extents]) };
}

interface Level {
  readonly type: ParallelType;
  readonly parts: number;
}

function annotateStream(
  { tensor: from, axis: wanted, parts, nest }: StreamAnnotation,
  { made }: Grown,
  mesh: DeviceMesh | null,
  levelsAt: (tensor: TensorView, axis: number) => Level[],
): void {
  const tensor = made[made.length - 1 - (from % made.length)];
  if (tensor === undefined || tensor.nDims === 0) return;
  const axis = wanted % tensor.nDims;
  const levels = levelsAt(tensor, axis);
  const isReduced = tensor.axis(axis).iterType === "reduction";
  if (nest !== "none" && mesh !== null && tensor.mesh === null && !isReduced) {
    tensor.setDeviceMesh(mesh);
    levels.push({ type: "DIDx", parts: mesh.size("DIDx") });
  }
  const level: Level = { type: "Stream", parts };
  if (nest === "outside") levels.push(level);
  else levels.unshift(level);
}

function meshOf(sizes: readonly number[]): DeviceMesh {
  const [first = 1, second] = sizes;
  if (second === undefined) return DeviceMesh.range(first);
  return new DeviceMesh(
    Array.from({ length: first }, (_, row) => Array.from({ length: second }, (__, column) => row * second + column)),
  );
}
