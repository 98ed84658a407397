/**
 * Random sharded Fusions for property tests. A recipe is plain numbers, so that fast-check can shrink it; `buildFusion`
 * reads them modulo what is possible, so that every recipe makes a Fusion. Lowering may still refuse it with a
 * diagnostic.
 */
import fc from "fast-check";
import {
  abs,
  add,
  amax,
  broadcast,
  DeviceMesh,
  Fusion,
  linear,
  matmul,
  mul,
  neg,
  permute,
  relu,
  reshape,
  set,
  slice,
  sub,
  sum,
  type TensorView,
} from "@braid-compiler/braid";

export interface Step {
  readonly op: number;
  readonly operand: number;
  readonly other: number;
  readonly axis: number;
  /** Which axis of extent `devices` is sharded; none beyond them. */
  readonly shard: number;
  /** Whether that axis is split by the number of devices: one index each as well. */
  readonly split: boolean;
  /** Which axis gets Stream; none beyond them. */
  readonly stream: number;
  /** Which of `meshes`. */
  readonly mesh: number;
  /** Whether memory order is the reverse of the logical one. */
  readonly reversed: boolean;
}

export interface Recipe {
  readonly devices: number;
  readonly shape: readonly number[];
  readonly inputShard: number;
  readonly inputSplit: boolean;
  readonly dtype: "float" | "int";
  readonly steps: readonly Step[];
}

const small = fc.nat({ max: 11 });

export const recipes: fc.Arbitrary<Recipe> = fc.record({
  devices: fc.constantFrom(1, 2, 3, 4, 5, 8),
  // 0 stands for the number of devices.
  shape: fc.array(fc.constantFrom(0, 0, 1, 2, 3), { minLength: 2, maxLength: 4 }),
  inputShard: fc.nat({ max: 3 }),
  inputSplit: fc.boolean(),
  dtype: fc.constantFrom("float", "int"),
  steps: fc.array(
    fc.record({
      op: small,
      operand: small,
      other: small,
      axis: small,
      shard: small,
      split: fc.boolean(),
      stream: small,
      mesh: small,
      reversed: fc.boolean(),
    }),
    {
      minLength: 1,
      maxLength: 6,
    },
  ),
});

export function buildFusion(recipe: Recipe): Fusion {
  const { devices, dtype } = recipe;
  const all = Array.from({ length: devices }, (_, device) => device);
  // Mostly all devices in order, so that most tensors stay where they are.
  const meshes = [all, all, all, all, all, all, all, all.toReversed(), all.slice(-2), all.slice(0, 1)].map(
    (list) => new DeviceMesh(list),
  );
  const f = new Fusion();
  const shapes = new Map<TensorView, readonly number[]>();
  const place = (
    tensor: TensorView,
    shape: readonly number[],
    { shard, split, stream, mesh, reversed }: Pick<Step, "shard" | "split" | "stream" | "mesh" | "reversed">,
  ): TensorView => {
    shapes.set(tensor, shape);
    const placed = meshes[mesh % meshes.length] ?? DeviceMesh.range(devices);
    tensor.setDeviceMesh(placed);
    if (reversed)
      tensor.setAllocationDomain(
        loopAxes(tensor, shape)
          .map(({ axis }) => axis)
          .toReversed(),
      );
    const shardable = loopAxes(tensor, shape).filter(({ extent }) => extent === placed.size("DIDx"));
    const sharded = shardable[shard];
    const free = loopAxes(tensor, shape).filter(({ axis }) => axis !== sharded?.axis);
    const streamed = free[stream];
    if (streamed !== undefined) tensor.axis(streamed.axis).parallelize("Stream");
    if (sharded === undefined) return tensor;
    // A memory order names axes that are not split.
    if (split && !reversed) tensor.outerSplit(sharded.axis, placed.size("DIDx"));
    tensor.axis(sharded.axis).parallelize("DIDx");
    return tensor;
  };
  const input = (shape: readonly number[], shard: number, split = false): TensorView =>
    place(f.input(shape, dtype), shape, { ...plain, shard, split });
  const shape = recipe.shape.map((extent) => (extent === 0 ? devices : extent));
  const made = [input(shape, recipe.inputShard, recipe.inputSplit)];
  for (const step of recipe.steps) {
    const x = made[made.length - 1 - (step.operand % Math.min(2, made.length))] ?? made[0];
    if (x === undefined) break;
    const whole = (tensor: TensorView, extents: readonly number[]): TensorView => place(tensor, extents, plain);
    const { tensor, shape: result } = apply(step, x, shapes.get(x) ?? [], made, shapes, input, whole);
    made.push(shapes.has(tensor) ? tensor : place(tensor, result, step));
  }
  const last = made.at(-1);
  if (last !== undefined) f.output(last);
  return f;
}

const plain = { shard: Infinity, split: false, stream: Infinity, mesh: 0, reversed: false };

/** Positions in the loop domain of the axes that are not reduced, with their extents. */
function loopAxes(tensor: TensorView, shape: readonly number[]): { axis: number; extent: number }[] {
  const kept = Array.from({ length: tensor.nDims }, (_, axis) => axis).filter(
    (axis) => tensor.axis(axis).iterType !== "reduction",
  );
  return kept.map((axis, i) => ({ axis, extent: shape[i] ?? 1 }));
}

function apply(
  step: Step,
  x: TensorView,
  shape: readonly number[],
  made: readonly TensorView[],
  shapes: ReadonlyMap<TensorView, readonly number[]>,
  input: (shape: readonly number[], shard: number) => TensorView,
  whole: (tensor: TensorView, shape: readonly number[]) => TensorView,
): { readonly tensor: TensorView; readonly shape: readonly number[] } {
  const axis = shape.length === 0 ? 0 : step.axis % shape.length;
  const without = shape.filter((_, i) => i !== axis);
  const partner = made.find((tensor) => tensor !== x && shapes.get(tensor)?.join() === shape.join()) ?? x;
  switch (step.op) {
    case 0:
      return { tensor: neg(x), shape };
    case 1:
      return { tensor: relu(whole(abs(x), shape)), shape };
    case 2:
      return { tensor: add(x, partner), shape };
    case 3:
      return { tensor: [sub, mul][step.other % 2] === mul ? mul(x, partner) : sub(x, partner), shape };
    case 4:
      return shape.length < 2 ? { tensor: set(x), shape } : { tensor: sum(x, [axis]), shape: without };
    case 5:
      return shape.length < 2 ? { tensor: set(x), shape } : { tensor: amax(x, [axis]), shape: without };
    case 6: {
      if (shape.length < 2) return { tensor: set(x), shape };
      const row = input(shape.slice(1), step.other);
      const flags = shape.map((_, i) => i === 0);
      return { tensor: add(x, whole(broadcast(row, flags), [1, ...shape.slice(1)])), shape };
    }
    case 7: {
      const order = shape.map((_, i) => (i + 1 + axis) % shape.length);
      return { tensor: permute(x, order), shape: order.map((i) => shape[i] ?? 1) };
    }
    case 8: {
      if (shape.length < 2) return { tensor: set(x), shape };
      const weight = input([shape.at(-1) ?? 1, 2], Infinity);
      return { tensor: matmul(x, weight), shape: [...shape.slice(0, -1), 2] };
    }
    case 9: {
      if (shape.length < 2) return { tensor: set(x), shape };
      const weight = input([3, shape.at(-1) ?? 1], Infinity);
      return { tensor: linear(x, weight), shape: [...shape.slice(0, -1), 3] };
    }
    case 10: {
      const merged = [shape.reduce((product, extent) => product * extent, 1)];
      return { tensor: set(whole(reshape(x, merged), merged)), shape: merged };
    }
    default:
      return {
        tensor: slice(
          x,
          shape.map(() => 0),
          shape.map((extent, i) => (i === axis ? Math.max(1, extent - 1) : extent)),
        ),
        shape: shape.map((extent, i) => (i === axis ? Math.max(1, extent - 1) : extent)),
      };
  }
}
