/**
 * Random reshardings for property tests: one op between tensors on random meshes (overlapping, disjoint, permuted, of
 * one and two dimensions), each sharded on random axes, whole or split. A recipe is plain numbers, so that fast-check
 * can shrink it; `buildResharding` reads them modulo what is possible, so that every recipe makes a Fusion.
 */
import fc from "fast-check";
import {
  add,
  amax,
  DeviceMesh,
  Fusion,
  linear,
  matmul,
  permute,
  prod,
  set,
  squeeze,
  sum,
  type TensorView,
} from "@braid-compiler/braid";

/** How to place one tensor: its mesh, and for DIDx and DIDy an axis and how it is split. */
interface Place {
  readonly mesh: number;
  readonly x: Sharding;
  readonly y: Sharding;
  readonly stream: number;
}

interface Sharding {
  /** Counts the axes; as many as there are or more: not sharded. */
  readonly axis: number;
  /** Splits off in front of the part with the DID type, 1 for none. */
  readonly outer: number;
}

export interface ReshardingRecipe {
  readonly op: number;
  readonly shape: readonly number[];
  readonly places: readonly Place[];
  readonly reduced: readonly boolean[];
  readonly marked: boolean;
  readonly sameMesh: boolean;
  readonly dtype: "float" | "int" | "half";
}

const sharding: fc.Arbitrary<Sharding> = fc.record({
  axis: fc.nat({ max: 4 }),
  outer: fc.constantFrom(1, 1, 1, 2),
});

const place: fc.Arbitrary<Place> = fc.record({
  mesh: fc.nat({ max: 100 }),
  x: sharding,
  y: sharding,
  stream: fc.constantFrom(0, 1, 2, 9, 9, 9, 9, 9, 9),
});

export const reshardingRecipes: fc.Arbitrary<ReshardingRecipe> = fc.record({
  op: fc.nat({ max: 10 }),
  shape: fc.array(fc.constantFrom(2, 3, 4, 6, 8, 12), { minLength: 2, maxLength: 3 }),
  places: fc.array(place, { minLength: 5, maxLength: 5 }),
  reduced: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  marked: fc.boolean(),
  sameMesh: fc.boolean(),
  dtype: fc.constantFrom("float", "int", "half"),
});

const meshes: readonly (readonly number[] | readonly (readonly number[])[])[] = [
  [0],
  [1],
  [0, 1],
  [1, 0],
  [2, 3],
  [1, 2],
  [0, 1, 2],
  [2, 0, 3],
  [0, 1, 2, 3],
  [3, 1, 0, 2],
  [2, 3, 4, 5],
  [0, 1, 2, 3, 4, 5],
  [
    [0, 1],
    [2, 3],
  ],
  [
    [3, 1],
    [0, 2],
  ],
  [
    [2, 3],
    [4, 5],
  ],
  [
    [0, 1, 2],
    [3, 4, 5],
  ],
  [
    [0, 1],
    [2, 3],
    [4, 5],
  ],
  [[1, 2]],
  [[1], [0]],
];

export const reshardingDevices = 6;

export function buildResharding(recipe: ReshardingRecipe): Fusion {
  const f = new Fusion();
  const { shape, dtype, op } = recipe;
  let used = 0;
  const annotate = (tensor: TensorView, extents: readonly (number | null)[], streams: boolean): TensorView => {
    const { mesh, x, y, stream } = recipe.places[used++ % recipe.places.length] ?? noPlace;
    const chosen = recipe.sameMesh ? (recipe.places[0]?.mesh ?? 0) : mesh;
    const nested = meshes[chosen % meshes.length] ?? [0];
    const deviceMesh = new DeviceMesh(nested);
    tensor.setDeviceMesh(deviceMesh);
    const taken = new Set<number>();
    for (const [type, { axis, outer }] of [
      ["DIDx", x],
      ["DIDy", y],
    ] as const) {
      if (!deviceMesh.hasAxis(type)) continue;
      const extent = extents[axis];
      if (extent === undefined || extent === null || taken.has(axis)) continue;
      if (shard(tensor, axis, extent, deviceMesh.size(type), outer, type)) taken.add(axis);
    }
    if (streams && extents[stream] !== undefined && extents[stream] !== null && !taken.has(stream)) {
      const position = loopPosition(tensor, stream);
      tensor.axis(position).parallelize("Stream");
    }
    return tensor;
  };
  const input = (extents: readonly number[]): TensorView => annotate(f.input(extents, dtype), extents, false);
  const rows = shape[0] ?? 2;
  const inner = shape[1] ?? 2;
  const finish = (result: TensorView, extents: readonly (number | null)[]): Fusion => {
    f.output(annotate(result, extents, true));
    if (recipe.marked) mark(result);
    return f;
  };
  switch (op) {
    case 0:
    case 1:
    case 2:
      return finish(set(input(shape)), shape);
    case 3:
    case 4:
    case 5: {
      const axes = shape.flatMap((_, i) => (recipe.reduced[i] === true ? [i] : []));
      const reduced = axes.length === 0 || axes.length === shape.length ? [0] : axes;
      const reduce = op === 3 ? amax : op === 4 && dtype === "int" ? prod : sum;
      return finish(
        reduce(input(shape), reduced),
        shape.map((extent, i) => (reduced.includes(i) ? null : extent)),
      );
    }
    case 6: {
      const columns = shape[2] ?? 4;
      return finish(matmul(input([rows, inner]), input([inner, columns])), [rows, columns, null]);
    }
    case 7: {
      const features = shape[2] ?? 4;
      const bias = recipe.reduced[0] === true ? [input([features])] : [];
      const x = input(recipe.reduced[1] === true ? [2, rows, inner] : [rows, inner]);
      const y = linear(x, input([features, inner]), ...bias);
      return finish(y, recipe.reduced[1] === true ? [2, rows, features, null] : [rows, features, null]);
    }
    case 8:
      return finish(add(input(shape), input(shape)), shape);
    case 9: {
      const unit = recipe.reduced[0] === true ? 0 : shape.length;
      return finish(squeeze(input(shape.toSpliced(unit, 0, 1)), [unit]), shape);
    }
    default: {
      const order = shape.map((_, i) => (i + 1) % shape.length);
      return finish(
        permute(input(shape), order),
        order.map((i) => shape[i] ?? 1),
      );
    }
  }
}

const noPlace: Place = { mesh: 0, x: { axis: 9, outer: 1 }, y: { axis: 9, outer: 1 }, stream: 9 };

/** Where logical axis `axis` begins in the loop domain, whose split axes stand in the order of their axes. */
function loopPosition(tensor: TensorView, axis: number): number {
  const { logical, loop, transforms } = tensor.data().domain;
  const id = logical[axis]?.id;
  const split = transforms.find((transform) => transform.kind === "split" && transform.input === id);
  return loop.findIndex((candidate) => candidate.id === (split?.kind === "split" ? split.outer : id));
}

function shard(
  tensor: TensorView,
  axis: number,
  extent: number,
  devices: number,
  outer: number,
  type: "DIDx" | "DIDy",
): boolean {
  let position = loopPosition(tensor, axis);
  if (extent === devices) {
    tensor.axis(position).parallelize(type);
    return true;
  }
  if (extent % (devices * outer) !== 0) return false;
  if (outer > 1) {
    tensor.split(position, outer, { inner: false });
    position++;
  }
  tensor.split(position, devices, { inner: false });
  tensor.axis(position).parallelize(type);
  return true;
}

/** DIDx on the output's reduction axis, where it fits. */
function mark(tensor: TensorView): void {
  const { logical } = tensor.data().domain;
  const axis = logical.findIndex(({ iterType }) => iterType === "reduction");
  const extent = logical[axis]?.extent;
  if (extent?.kind !== "constant" || tensor.mesh === null) return;
  shard(tensor, axis, extent.value, tensor.mesh.size("DIDx"), 1, "DIDx");
}
