/**
 * Windows of pools, and of convolutions with large kernels, as gradients by the kernel have: each axis becomes two, of
 * the places of windows and of what is in one. Windows side by side are reshapes, others are indexed.
 */
import { add, indexSelect, matmul, mul, pad, reshape } from "../../../ir/api/ops.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { readExtents } from "../../manual/parts.ts";
import type { Windows } from "../../contractions.ts";
import { permutedTo, withAxes } from "../../views.ts";
import type { Reader } from "../reader.ts";
import { counter } from "./shape.ts";

/** Along one axis. */
export interface AxisWindows {
  readonly places: number;
  readonly size: number;
  readonly stride: number;
  readonly dilation: number;
}

/** Axis `axis` as [places, size]: element (i, k) is that at i * stride + k * dilation. */
export function windowed(
  reader: Reader,
  tensor: TensorView,
  axis: number,
  { places, size, stride, dilation }: AxisWindows,
): TensorView {
  const extents = readExtents(tensor);
  const cutAt = (end: number): TensorView => {
    const over = at(extents, axis) - end;
    return over === 0
      ? tensor
      : pad(
          tensor,
          extents.map((_, i) => (i === axis ? [0, -over] : [0, 0])),
        );
  };
  const apart = (outer: number, inner: number): TensorView =>
    reshape(cutAt(outer * inner), extents.toSpliced(axis, 1, outer, inner));
  if (size === 1 && (stride === 1 || places === 1)) return withAxes(cutAt(places), axis + 1, 1);
  if (dilation === 1 && (stride === size || places === 1)) return apart(places, size);
  if (stride === 1 && dilation === places) {
    const order = [...extents.keys(), extents.length];
    return permutedTo(apart(size, places), order.with(axis, axis + 1).with(axis + 1, axis));
  }
  const [first, within] = [counter(reader, places, 0, 2, "int"), counter(reader, size, 1, 2, "int")];
  return indexSelect(tensor, axis, add(mul(first, stride), mul(within, dilation)));
}

interface WholeWindows extends Windows {
  /** The number of windows along each axis. */
  readonly places: readonly number[];
  /** As many groups of images, each for a group of features. */
  readonly batchGroups: number;
}

/** Images [N, C, h, w] times a kernel [O, C / groups, kh, kw]: [N / batchGroups, O, h', w']. */
export function convolveWindows(
  reader: Reader,
  images: TensorView,
  kernel: TensorView,
  { places, stride, dilation, padding, groups: ofFeatures, batchGroups }: WholeWindows,
): TensorView {
  const [out = 0, into = 0, ...sizes] = readExtents(kernel);
  const [batch = 0] = readExtents(images);
  const groups = ofFeatures * batchGroups;
  const rows = batch / batchGroups;
  const isPadded = padding.flat().some((width) => width !== 0);
  const padded = isPadded ? pad(images, [[0, 0], [0, 0], ...padding]) : images;
  const cut = places.reduceRight((tensor, count, i) => {
    const along = { places: count, size: at(sizes, i), stride: at(stride, i), dilation: at(dilation, i) };
    return windowed(reader, tensor, 2 + i, along);
  }, padded);
  // [batch, features, places and windows in turn] as [groups, batch, places, features and windows joined].
  const extents = readExtents(cut);
  const all = [...extents.keys(), extents.length];
  const split =
    batchGroups > 1
      ? reshape(cut, extents.toSpliced(0, 1, batchGroups, rows))
      : permutedTo(reshape(cut, extents.toSpliced(1, 1, ofFeatures, into)), all.with(0, 1).with(1, 0));
  const order = [0, 1, ...places.map((_, i) => 3 + 2 * i), 2, ...places.map((_, i) => 4 + 2 * i)];
  const depth = into * elementCount(sizes);
  const joined = permutedTo(split, order);
  const matrix = permutedTo(reshape(kernel, [groups, out / groups, depth]), [0, 2, 1]);
  const product =
    groups === 1
      ? withAxes(matmul(reshape(joined, [rows, ...places, depth]), reshape(matrix, [depth, out])), 0, 1)
      : matmul(reshape(joined, [groups, rows, ...places, depth]), withAxes(matrix, 1, places.length));
  const inOrder = permutedTo(product, [1, 0, product.rank - 1, ...places.map((_, i) => 2 + i)]);
  return reshape(inOrder, [rows, out, ...places]);
}
