/** Contractions and convolutions of models, as matmuls and linears. */
import { add, cast, cat, linear, matmul, mul, pad, permute, reshape, slice, squeeze } from "../ir/api/ops.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { constantValue, foldProduct } from "../ir/scalar/fold.ts";
import type { Scalar } from "../ir/scalar/scalar.ts";
import { accumulatorOf, type DType } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { alongAxis, permutedTo, withAxes } from "./views.ts";

/** Axes of both operands, in pairs. */
export interface AxisPairs {
  readonly left: readonly number[];
  readonly right: readonly number[];
}

/**
 * A matmul with batch, contracted and free axes in any order, of the operands' dtype or of their sums'. The result has
 * the axes of the batch, the free ones of the left operand, and those of the right one.
 */
export function contract(
  left: TensorView,
  right: TensorView,
  batch: AxisPairs,
  contracted: AxisPairs,
  dtype = left.dtype,
): TensorView {
  const own = freeAxes(left, [...batch.left, ...contracted.left]);
  // The rows of the matrices: with a batch, the longest of the free axes. The others become batch axes.
  const size = (axis: number): number => constantValue(at(left.extents, axis)) ?? Infinity;
  const freeLeft = batch.left.length === 0 ? own : own.toSorted((a, b) => size(a) - size(b));
  const product = contractInOrder(left, right, batch, contracted, freeLeft, dtype);
  const first = batch.left.length;
  const places = own.map((axis) => first + freeLeft.indexOf(axis));
  return permutedTo(product, [...batch.left.keys(), ...places, ...range(first + own.length, product.rank)]);
}

function range(start: number, stop: number): readonly number[] {
  return Array.from({ length: stop - start }, (_, i) => start + i);
}

function contractInOrder(
  left: TensorView,
  right: TensorView,
  batch: AxisPairs,
  contracted: AxisPairs,
  freeLeft: readonly number[],
  dtype: DType,
): TensorView {
  const freeRight = freeAxes(right, [...batch.right, ...contracted.right]);
  const extentsOf = ({ extents }: TensorView, own: readonly number[]): readonly Scalar[] =>
    own.map((axis) => at(extents, axis));
  const depth = foldProduct(extentsOf(left, contracted.left));
  const batches = extentsOf(left, batch.left);
  // [batch, free of the left, contracted] x [batch, contracted, free of the right].
  let a = permutedTo(left, [...batch.left, ...freeLeft, ...contracted.left]);
  let b = permutedTo(right, [...batch.right, ...contracted.right, ...freeRight]);
  if (contracted.left.length !== 1) a = reshape(a, [...batches, ...extentsOf(left, freeLeft), depth]);
  if (contracted.right.length !== 1 || freeRight.length !== 1) {
    b = reshape(b, [...batches, depth, foldProduct(extentsOf(right, freeRight))]);
  }
  const firstFree = batches.length;
  if (freeLeft.length === 0) a = withAxes(a, firstFree, 1);
  // All free axes but the last are batch axes, along which the right operand repeats: a matrix does so as it is.
  else if (firstFree > 0) b = withAxes(b, firstFree, freeLeft.length - 1);
  const product = matmul(a, b, { dtype });
  if (freeLeft.length > 0 && freeRight.length === 1) return product;
  const rest = freeLeft.length === 0 ? [firstFree] : [];
  const dropped = freeRight.length === 0 ? [...rest, product.rank - 1] : rest;
  if (freeRight.length < 2) return squeeze(product, dropped);
  return reshape(product, [...batches, ...extentsOf(left, freeLeft), ...extentsOf(right, freeRight)]);
}

function freeAxes({ extents }: TensorView, used: readonly number[]): readonly number[] {
  return extents.flatMap((_, axis) => (used.includes(axis) ? [] : [axis]));
}

// Convolutions are contractions over each window of the images, or for each group of channels, or, where each channel has
// a kernel of its own, sums of shifted images.

/** One entry for each axis of the images. */
export interface Windows {
  readonly stride: readonly number[];
  readonly padding: readonly (readonly [before: number, after: number])[];
  readonly dilation: readonly number[];
  /** Channels and features are cut in as many groups; each group of features reads its group of channels. */
  readonly groups: number;
}

/**
 * Images [N, C, h, w] times a kernel [O, C / groups, kh, kw], in any number of axes of known extents: [N, O, h', w'].
 * Empty results are the caller's to refuse.
 */
export function convolve(
  images: TensorView,
  kernel: TensorView,
  bias: TensorView | null,
  windows: Windows,
): TensorView {
  const sizes = kernel.extents.slice(2).map((extent) => constantValue(extent) ?? 0);
  const plain = images.extents.slice(2).map((extent) => constantValue(extent) ?? 0);
  if (isPatches(sizes, plain, windows)) return patchesTimes(images, kernel, bias, sizes);
  const taps = tapsOf(images, sizes, windows);
  const [features, depth] = [at(kernel.extents, 0), at(kernel.extents, 1)].map((extent) => constantValue(extent) ?? 0);
  const y =
    depth === 1 && features === windows.groups && windows.groups > 1
      ? byChannel(taps, kernel, bias)
      : windows.groups === 1
        ? linearOf(joined(taps), matrixOf(kernel), bias)
        : byGroup(taps, kernel, bias, windows.groups);
  return permute(y, [0, y.rank - 1, ...sizes.map((_, i) => 1 + i)]);
}

/** How many windows there are along each axis of the images. */
export function windowCounts(
  images: readonly number[],
  kernel: readonly number[],
  { stride, padding, dilation }: Windows,
): readonly number[] {
  return images.map((size, i) => {
    const [before, after] = at(padding, i);
    const reach = at(dilation, i) * (at(kernel, i) - 1) + 1;
    return Math.floor((size + before + after - reach) / at(stride, i)) + 1;
  });
}

/** Windows side by side, as vision transformers cut images: no element is read twice. */
function isPatches(kernel: readonly number[], images: readonly number[], windows: Windows): boolean {
  const { stride, padding, dilation, groups } = windows;
  const isPlain = padding.flat().every((width) => width === 0) && dilation.every((step) => step === 1) && groups === 1;
  return isPlain && kernel.every((size, i) => size === at(stride, i) && at(images, i) % size === 0);
}

/** For each position of the kernel, what it reads: [N, h', w', C]. */
function tapsOf(images: TensorView, kernel: readonly number[], windows: Windows): readonly TensorView[] {
  const { stride, padding, dilation } = windows;
  const isPadded = padding.flat().some((width) => width !== 0);
  const padded = isPadded ? pad(images, [[0, 0], [0, 0], ...padding]) : images;
  const rows = permute(padded, [0, ...kernel.map((_, i) => 2 + i), 1]);
  const sizes = images.extents.slice(2).map((extent) => constantValue(extent) ?? 0);
  const counts = windowCounts(sizes, kernel, windows);
  const isDense = stride.every((step) => step === 1);
  return positionsIn(kernel).map((position) => {
    const starts = position.map((each, i) => each * at(dilation, i));
    const stops = starts.map((start, i) => start + (at(counts, i) - 1) * at(stride, i) + 1);
    const [batch, channels] = [at(rows.extents, 0), at(rows.extents, rows.rank - 1)];
    const bounds = [
      [0, ...starts, 0],
      [batch, ...stops, channels],
    ] as const;
    return isDense ? slice(rows, ...bounds) : slice(rows, ...bounds, [1, ...stride, 1]);
  });
}

/** All positions of an array of these sizes, row by row. */
function positionsIn(sizes: readonly number[]): readonly (readonly number[])[] {
  return sizes.reduce<readonly (readonly number[])[]>(
    (found, size) => found.flatMap((position) => Array.from({ length: size }, (_, i) => [...position, i])),
    [[]],
  );
}

function joined(taps: readonly TensorView[]): TensorView {
  const [first] = taps;
  return taps.length === 1 && first !== undefined ? first : cat(taps, at(taps, 0).rank - 1);
}

/** [O, C, kh, kw] as [O, kh * kw * C]. */
function matrixOf(kernel: TensorView): TensorView {
  const own = permutedTo(kernel, [0, ...kernel.extents.slice(2).map((_, i) => 2 + i), 1]);
  return reshape(own, [at(kernel.extents, 0), foldProduct(kernel.extents.slice(1))]);
}

function linearOf(x: TensorView, matrix: TensorView, bias: TensorView | null): TensorView {
  return bias === null ? linear(x, matrix) : linear(x, matrix, bias);
}

function byChannel(taps: readonly TensorView[], kernel: TensorView, bias: TensorView | null): TensorView {
  const { rank, dtype } = at(taps, 0);
  const sum = accumulatorOf(dtype);
  const inSum = (x: TensorView): TensorView => (x.dtype === sum ? x : cast(x, sum));
  const features = at(kernel.extents, 0);
  const matrix = inSum(reshape(kernel, [features, taps.length]));
  const scaled = taps.map((tap, i) => {
    const column = reshape(slice(matrix, [0, i], [features, i + 1]), [features]);
    return mul(inSum(tap), alongAxis(column, rank - 1, rank));
  });
  const added = bias === null ? scaled : [...scaled, alongAxis(inSum(bias), rank - 1, rank)];
  const y = added.reduce((a, b) => add(a, b));
  return y.dtype === dtype ? y : cast(y, dtype);
}

/** A contraction for each group, as a batch of them. */
function byGroup(taps: readonly TensorView[], kernel: TensorView, bias: TensorView | null, groups: number): TensorView {
  const [features = 0, depth = 0] = kernel.extents.map((extent) => constantValue(extent) ?? 0);
  const rows = joined(taps);
  const places = rows.extents.slice(0, -1);
  const last = places.length;
  const cut = reshape(rows, [...places, taps.length, groups, depth]);
  const x = reshape(permute(cut, [last + 1, ...places.keys(), last, last + 2]), [
    groups,
    foldProduct(places),
    taps.length * depth,
  ]);
  const own = reshape(matrixOf(kernel), [groups, features / groups, taps.length * depth]);
  const y = reshape(matmul(x, permute(own, [0, 2, 1])), [groups, ...places, features / groups]);
  const joint = reshape(permute(y, [...places.map((_, i) => 1 + i), 0, last + 1]), [...places, features]);
  return bias === null ? joint : add(joint, alongAxis(bias, last, last + 1));
}

function patchesTimes(
  images: TensorView,
  kernel: TensorView,
  bias: TensorView | null,
  sizes: readonly number[],
): TensorView {
  const [batch, channels] = [at(images.extents, 0), at(images.extents, 1)];
  const grid = sizes.map((size, i) => (constantValue(at(images.extents, 2 + i)) ?? 1) / size);
  const cut = reshape(images, [batch, channels, ...grid.flatMap((count, i) => [count, at(sizes, i)])]);
  const order = [0, ...grid.map((_, i) => 2 + 2 * i), 1, ...grid.map((_, i) => 3 + 2 * i)];
  const length = foldProduct(kernel.extents.slice(1));
  const y = linearOf(
    reshape(permute(cut, order), [batch, ...grid, length]),
    reshape(kernel, [at(kernel.extents, 0), length]),
    bias,
  );
  return permute(y, [0, y.rank - 1, ...grid.map((_, i) => 1 + i)]);
}
