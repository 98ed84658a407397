/**
 * Values of manual computations, which are functions of one device's parts. A part has a leading axis for each manual
 * mesh dimension over which it differs, sharded along it. A collective is then an op on whole tensors: the sum over a
 * leading axis is an all-reduce, and a leading axis that moves into another one an all-gather.
 */
import { amax, amin, broadcast, expand, mul, permute, prod, reshape, select, sum } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";

/** One device's part of a tensor. */
export interface DevicePart {
  /** An axis for each of `axes`, then those of the part; an axis along which it only repeats may have the extent 1. */
  readonly tensor: TensorView;
  /** The dimensions over which the part differs, in the order of `ManualSizes`. */
  readonly axes: readonly string[];
  readonly shape: readonly number[];
}

/** Of all manual dimensions, in the order in which tensors have them. */
export type ManualSizes = ReadonlyMap<string, number>;

/** How the parts of a group are combined. */
export const partReductions = { sum, prod, amax, amin } as const;
export type PartReduction = keyof typeof partReductions;

/** The extents of a tensor, which are all constant. */
export function readExtents(tensor: TensorView): readonly number[] {
  return tensor.extents.map(knownExtent);
}

export function knownExtent(extent: Scalar): number {
  return extent.kind === "constant" ? extent.value : Number.NaN;
}

export function sizesAlong(sizes: ManualSizes, axes: readonly string[]): readonly number[] {
  return axes.map((axis) => sizes.get(axis) ?? 1);
}

const none: readonly never[] = [];

/** The dimensions in any of the lists, in the order in which tensors have them. */
export function unionOfAxes(sizes: ManualSizes, lists: readonly (readonly string[])[]): readonly string[] {
  if (lists.every((axes) => axes.length === 0)) return none;
  const all = new Set(lists.flat());
  return [...sizes.keys()].filter((axis) => all.has(axis));
}

/** The tensor with a leading axis for each of `axes`; those along which it only repeats have the extent 1. */
export function tensorOnAxes({ tensor, axes: own, shape }: DevicePart, axes: readonly string[]): TensorView {
  if (axes.length === own.length) return tensor;
  const flags = axes.map((axis) => !own.includes(axis));
  return broadcast(tensor, [...flags, ...shape.map(() => false)]);
}

/** The same with the whole shape; `wide`: also along the leading axes. */
export function wholeOnAxes(sizes: ManualSizes, part: DevicePart, axes: readonly string[], wide = true): TensorView {
  const tensor = tensorOnAxes(part, axes);
  const own = readExtents(tensor);
  const leading = wide ? sizesAlong(sizes, axes) : own.slice(0, axes.length);
  const whole = [...leading, ...part.shape];
  return own.every((extent, i) => extent === whole[i]) ? tensor : expand(tensor, whole);
}

/** The part with a leading axis for each dimension of the groups, too. */
export function spread(sizes: ManualSizes, part: DevicePart, groups: readonly string[]): DevicePart {
  const axes = unionOfAxes(sizes, [part.axes, groups]);
  return { ...part, tensor: wholeOnAxes(sizes, part, axes), axes };
}

/** [axes of `from`] as [axes of `to`], which are the same in another order and joined as `shape` says. */
export function moved(
  tensor: TensorView,
  from: readonly string[],
  to: readonly string[],
  shape: readonly number[],
): TensorView {
  const order = to.map((label) => from.indexOf(label));
  const permuted = order.every((axis, i) => axis === i) ? tensor : permute(tensor, order);
  return readExtents(permuted).length === shape.length ? permuted : reshape(permuted, shape);
}

export const labelsOf = (shape: readonly number[]): readonly string[] => shape.map((_, i) => String(i));

/** The labels of axes, with those of `inserted[i]` in front of axis i. */
function labelled(shape: readonly number[], inserted: (axis: number) => readonly string[]): readonly string[] {
  return labelsOf(shape).flatMap((label, i) => [...inserted(i), label]);
}

/** The parts of a group, one after the other along axis `dim`, on every device of it. */
export function gatherParts(sizes: ManualSizes, part: DevicePart, groups: readonly string[], dim: number): DevicePart {
  const { tensor, axes, shape } = spread(sizes, part, groups);
  const rest = axes.filter((name) => !groups.includes(name));
  const whole = shape.with(dim, at(shape, dim) * elementCount(sizesAlong(sizes, groups)));
  const to = [...rest, ...labelled(shape, (i) => (i === dim ? groups : []))];
  return {
    tensor: moved(tensor, [...axes, ...labelsOf(shape)], to, [...sizesAlong(sizes, rest), ...whole]),
    axes: rest,
    shape: whole,
  };
}

/** The combined parts of a group, on every device of it. `refuse`: a product of equal parts. */
export function reduceParts(
  sizes: ManualSizes,
  part: DevicePart,
  groups: readonly string[],
  reduction: PartReduction,
  refuse?: (found: string, expected: string) => never,
): DevicePart {
  const own = part.axes.filter((name) => groups.includes(name));
  const same = groups.filter((name) => !own.includes(name));
  const tensor = wholeOnAxes(sizes, part, part.axes);
  const over = own.map((name) => part.axes.indexOf(name));
  const reduced = over.length === 0 ? tensor : partReductions[reduction](tensor, over);
  const times = elementCount(sizesAlong(sizes, same));
  if (times > 1 && reduction === "prod") refuse?.("a product of equal parts", "parts that differ");
  return {
    // Parts that do not differ are added as often as there are devices.
    tensor: times > 1 && reduction === "sum" ? mul(reduced, times) : reduced,
    axes: part.axes.filter((name) => !own.includes(name)),
    shape: part.shape,
  };
}

interface Pieces {
  /** The part on the axes of the groups, too, with an axis for each of `groups` in front of axis `dim`. */
  readonly tensor: TensorView;
  readonly axes: readonly string[];
  /** Of a piece. */
  readonly shape: readonly number[];
}

/** Cuts axis `dim` of a part into a piece for each device of the group. */
function piecesOf(sizes: ManualSizes, part: DevicePart, groups: readonly string[], dim: number): Pieces {
  const { tensor, axes, shape } = spread(sizes, part, groups);
  const counts = sizesAlong(sizes, groups);
  const piece = at(shape, dim) / elementCount(counts);
  const split = shape.flatMap((extent, i) => (i === dim ? [...counts, piece] : [extent]));
  return { tensor: reshape(tensor, [...sizesAlong(sizes, axes), ...split]), axes, shape: shape.with(dim, piece) };
}

/** The combined parts of a group, cut along axis `dim`, of which each device has a piece. */
export function scatterParts(
  sizes: ManualSizes,
  part: DevicePart,
  groups: readonly string[],
  dim: number,
  reduction: PartReduction,
): DevicePart {
  const { tensor, axes, shape } = piecesOf(sizes, part, groups, dim);
  const over = groups.map((name) => axes.indexOf(name));
  const reduced = over.length === 0 ? tensor : partReductions[reduction](tensor, over);
  const rest = axes.filter((name) => !groups.includes(name));
  const from = [...rest, ...labelled(shape, (i) => (i === dim ? groups : []))];
  return {
    tensor: moved(reduced, from, [...axes, ...labelsOf(shape)], readExtents(reduced)),
    axes,
    shape,
  };
}

/** The pieces along the split axis go to the devices of the group, which join what they get along the other axis. */
export function exchangeParts(
  sizes: ManualSizes,
  part: DevicePart,
  groups: readonly string[],
  splitDim: number,
  joinDim: number,
): DevicePart {
  const { tensor, axes, shape } = piecesOf(sizes, part, groups, splitDim);
  const receivers = groups.map((name) => `to ${name}`);
  const from = [...axes, ...labelled(shape, (i) => (i === splitDim ? receivers : []))];
  const leading = axes.map((name) => (groups.includes(name) ? `to ${name}` : name));
  const to = [...leading, ...labelled(shape, (i) => (i === joinDim ? groups : []))];
  const joined = shape.with(joinDim, at(shape, joinDim) * elementCount(sizesAlong(sizes, groups)));
  return { tensor: moved(tensor, from, to, [...sizesAlong(sizes, axes), ...joined]), axes, shape: joined };
}

/** The part of the device at these positions of its group, on every device of it. */
export function partAt(sizes: ManualSizes, part: DevicePart, groups: readonly string[], position: number): DevicePart {
  let rest = position;
  let { tensor, axes } = part;
  for (const name of groups.toReversed()) {
    const size = sizes.get(name) ?? 1;
    const axis = axes.indexOf(name);
    if (axis >= 0) tensor = select(tensor, axis, rest % size);
    axes = axes.filter((each) => each !== name);
    rest = Math.floor(rest / size);
  }
  return { ...part, tensor, axes };
}

/** The parts of a whole tensor that is cut along `cuts[i]` on axis i. Throws nothing: the pieces are whole. */
export function splitIntoParts(
  sizes: ManualSizes,
  whole: DevicePart,
  cuts: readonly (readonly string[])[],
): DevicePart {
  const shape = whole.shape.map((extent, i) => extent / elementCount(sizesAlong(sizes, at(cuts, i))));
  if (cuts.every((names) => names.length === 0)) return { ...whole, shape };
  const axes = unionOfAxes(sizes, [whole.axes, ...cuts]);
  const tensor = wholeOnAxes(sizes, whole, whole.axes);
  const split = shape.flatMap((extent, i) => [...sizesAlong(sizes, at(cuts, i)), extent]);
  const from = [...whole.axes, ...labelled(shape, (i) => at(cuts, i))];
  const apart = reshape(tensor, [...sizesAlong(sizes, whole.axes), ...split]);
  return {
    tensor: permute(
      apart,
      [...axes, ...labelsOf(shape)].map((label) => from.indexOf(label)),
    ),
    axes,
    shape,
  };
}

/** The whole tensor of which a part is a piece along `cuts[i]` on axis i. Along others of `dims` it is the first one's. */
export function joinParts(
  sizes: ManualSizes,
  part: DevicePart,
  cuts: readonly (readonly string[])[],
  dims: readonly string[],
): DevicePart {
  const outer = part.axes.filter((name) => !dims.includes(name));
  const wide = { ...part, tensor: wholeOnAxes(sizes, part, part.axes) };
  const chosen = partAt(
    sizes,
    wide,
    part.axes.filter((name) => dims.includes(name) && !cuts.flat().includes(name)),
    0,
  );
  const axes = unionOfAxes(sizes, [outer, ...cuts]);
  const shape = part.shape.map((extent, i) => extent * elementCount(sizesAlong(sizes, at(cuts, i))));
  const tensor = moved(
    wholeOnAxes(sizes, chosen, axes),
    [...axes, ...labelsOf(shape)],
    [...outer, ...labelled(shape, (i) => at(cuts, i))],
    [...sizesAlong(sizes, outer), ...shape],
  );
  return { tensor, axes: outer, shape };
}

/** Cuts the tensor along its leading axes. */
export function placeLeading(tensor: TensorView, devices: DeviceMesh, axes: readonly string[]): void {
  tensor.setDeviceMesh(devices);
  const kept = tensor.data().domain.loop.flatMap(({ iterType }, i) => (iterType === "reduction" ? [] : [i]));
  axes.forEach((name, i) => {
    if (devices.hasAxis(name)) tensor.axis(at(kept, i)).parallelize(name);
  });
}
