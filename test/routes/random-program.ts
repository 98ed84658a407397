/**
 * Random programs of a few ops on tensors that lie anyhow: any meshes of the same devices or of others, parts of parts,
 * uneven ones, chunks. A seed gives the same one on every machine.
 */
import {
  add,
  broadcast,
  cat,
  DeviceMesh,
  Fusion,
  linear,
  matmul,
  permute,
  relu,
  reshape,
  set,
  slice,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";

export interface RandomProgram {
  readonly fusion: Fusion;
  readonly devices: number;
}

const shapes: readonly (readonly number[])[] = [[2], [3], [4], [6], [2, 2], [2, 3], [3, 2], [2, 4], [2, 2, 2], [1, 2]];
const types = ["DIDx", "DIDy", "DIDz"] as const;

/** The extents of inputs and of what linears make: many parts are uneven. */
const extents = [4, 6, 8, 8, 12, 5, 7, 3, 2];

export function randomProgram(seed: number): RandomProgram {
  const random = createRandom(seed);
  const fusion = new Fusion();
  const meshes = drawMeshes(random);
  const stream = random.integer(3) === 0 ? 1 + random.integer(4) : null;
  let streams = 0;
  const annotate = (tensor: TensorView): void => {
    const mayStream = stream !== null && streams === 0 && random.integer(2) === 0;
    if (place(random, tensor, pick(random, meshes), mayStream ? stream : null)) streams++;
  };
  const [m, k] = [pick(random, extents), pick(random, extents)];
  const made = [fusion.input([m, k])];
  annotate(at(made, 0));
  const count = 1 + random.integer(4);
  for (let i = 0; i < count; i++) {
    const [result, inputs] = drawOp(random, fusion, made);
    for (const input of inputs) annotate(input);
    if (random.integer(3) === 0 || (i === count - 1 && random.integer(3) > 0)) annotate(result);
    made.push(...(random.integer(4) === 0 ? inputs : []), result);
  }
  fusion.output(at(made, made.length - 1));
  return { fusion, devices: Math.max(...meshes.flatMap(({ devices }) => devices)) + 1 };
}

/** Mostly one shape and its devices in other orders; sometimes another mesh. */
function drawMeshes(random: Random): readonly DeviceMesh[] {
  const shape = pick(random, shapes);
  const size = shape.reduce((product, extent) => product * extent, 1);
  const own = Array.from({ length: size }, (_, i) => i);
  const meshes = [meshOf(shape, own)];
  const kind = random.integer(4);
  if (kind === 0) meshes.push(meshOf(shape, shuffled(random, own)));
  if (kind === 1) {
    const other = pick(random, shapes);
    const count = other.reduce((product, extent) => product * extent, 1);
    const first = random.integer(3);
    meshes.push(
      meshOf(
        other,
        Array.from({ length: count }, (_, i) => first + i),
      ),
    );
  }
  return meshes;
}

function meshOf(shape: readonly number[], devices: readonly number[]): DeviceMesh {
  type Nested = readonly (number | Nested)[];
  const nested = ([, ...inner]: readonly number[], own: readonly number[]): Nested => {
    if (inner.length === 0) return own;
    const span = inner.reduce((product, size) => product * size, 1);
    return Array.from({ length: own.length / span }, (_, i) => nested(inner, own.slice(i * span, (i + 1) * span)));
  };
  return new DeviceMesh(nested(shape, devices));
}

/** Whether the tensor got Stream. */
function place(random: Random, tensor: TensorView, mesh: DeviceMesh, chunks: number | null): boolean {
  tensor.setDeviceMesh(mesh);
  const axes = tensor.nDims;
  const parts: { readonly type: string | null; readonly count: number }[][] = Array.from({ length: axes }, () => []);
  for (const type of shuffled(random, types)) {
    if (!mesh.hasAxis(type) || random.integer(4) === 0) continue;
    parts[random.integer(axes)]?.push({ type, count: mesh.size(type) });
  }
  if (random.integer(6) === 0) at(parts, random.integer(axes)).unshift({ type: null, count: 2 });
  if (chunks !== null) {
    const own = at(parts, random.integer(axes));
    own.splice(random.integer(2) === 0 ? 0 : own.length, 0, { type: "Stream", count: chunks });
  }
  for (const [axis, own] of [...parts.entries()].toReversed()) {
    for (const [i, { type, count }] of own.entries()) {
      const part = tensor.outerSplit(axis + i, count);
      if (type !== null) part.parallelize(type);
    }
  }
  return chunks !== null;
}

/** An op of the last tensor, and the inputs that it adds. */
function drawOp(random: Random, f: Fusion, made: readonly TensorView[]): readonly [TensorView, readonly TensorView[]] {
  const x = at(made, random.integer(3) === 0 ? random.integer(made.length) : made.length - 1);
  const shape = shapeOf(f, x);
  const [rows = 1, columns = 1] = shape;
  switch (random.integer(11)) {
    case 0:
      return [set(x), []];
    case 1: {
      const other = f.input(shape);
      return [add(x, other), [other]];
    }
    case 2: {
      if (shape.length !== 2) return [relu(x), []];
      const w = f.input([pick(random, extents), columns]);
      return [linear(x, w), [w]];
    }
    case 3: {
      if (shape.length !== 2) return [relu(x), []];
      const w = f.input([columns, pick(random, extents)]);
      return [matmul(x, w), [w]];
    }
    case 4: {
      if (shape.length !== 2) return [relu(x), []];
      const [w, b] = [f.input([rows, columns]), f.input([rows])];
      return [linear(x, w, b), [w, b]];
    }
    case 5:
      return shape.length < 2 ? [relu(x), []] : [sum(x, [random.integer(2)]), []];
    case 6:
      return shape.length < 2 ? [relu(x), []] : [permute(x, [...shape.keys()].toReversed()), []];
    case 7:
      if (shape.length === 2) return [reshape(x, [rows * columns]), []];
      return shape.length === 1 && rows % 2 === 0 ? [reshape(x, [2, rows / 2]), []] : [relu(x), []];
    case 8:
      return shape.length === 1 ? [broadcast(x, [true, false]), []] : [relu(x), []];
    case 9: {
      const half = Math.ceil(rows / 2);
      const rest = shape.slice(1);
      const zeros = shape.map(() => 0);
      return [
        cat([slice(x, zeros, [half, ...rest]), slice(x, zeros, [half, ...rest])], random.integer(shape.length)),
        [],
      ];
    }
    default:
      return [relu(x), []];
  }
}

function shapeOf(f: Fusion, tensor: TensorView): readonly number[] {
  const { domain } = at(f.data().tensors, tensor.id);
  return domain.logical
    .filter(({ iterType }) => iterType !== "reduction")
    .map(({ extent }) => (extent.kind === "constant" ? extent.value : 1));
}

function pick<T>(random: Random, values: readonly T[]): T {
  return at(values, random.integer(values.length));
}

function shuffled<T>(random: Random, values: readonly T[]): readonly T[] {
  const rest = [...values];
  return values.map(() => at(rest.splice(random.integer(rest.length), 1), 0));
}
