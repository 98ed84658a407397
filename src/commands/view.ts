/** Views and their arithmetic: sizes, parts, and the common box under which views of different shapes correspond. */
import { type DType, dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import type { BufferId, BufferRef } from "./buffer.ts";
import type { Operand } from "./kernel.ts";
import { elementCount } from "../numerics/tensor/host-tensor.ts";

/** A strided box of elements in a buffer. Copies and transfers read and write their operands in place. */
export interface View {
  readonly buffer: BufferId;
  /** In bytes. */
  readonly offset: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
}

export function operandOf({ dtype, shape, strides }: View): Operand {
  return { dtype, shape, strides };
}

export function refOf({ buffer, offset }: View): BufferRef {
  return { buffer, offset };
}

/** Whether the view has no elements. */
export function isEmpty({ shape }: Pick<View, "shape">): boolean {
  return shape.includes(0);
}

/** Strides, in elements, of a contiguous box with axes in the memory order `order`, outermost first. */
export function stridesInOrder(shape: readonly number[], order: readonly number[]): readonly number[] {
  const strides = shape.map(() => 1);
  let elements = 1;
  for (const axis of order.toReversed()) {
    strides[axis] = elements;
    elements *= at(shape, axis);
  }
  return strides;
}

/** Row-major strides, in elements. */
export function contiguousStrides(shape: readonly number[]): readonly number[] {
  const strides = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis--) strides[axis] = at(strides, axis + 1) * at(shape, axis + 1);
  return strides;
}

/** Index `part` of axis 0, without that axis. */
export function partOf(view: View, part: number): View {
  return {
    ...view,
    offset: view.offset + part * at(view.strides, 0) * dtypes[view.dtype].bytes,
    shape: view.shape.slice(1),
    strides: view.strides.slice(1),
  };
}

/** `count` indices of `axis` from `start`. */
export function narrowView(view: View, axis: number, start: number, count: number): View {
  return {
    ...view,
    offset: view.offset + start * at(view.strides, axis) * dtypes[view.dtype].bytes,
    shape: view.shape.with(axis, count),
  };
}

export interface CommonBox {
  readonly shape: readonly number[];
  /** In elements; one list per view. */
  readonly strides: readonly (readonly number[])[];
}

/**
 * One shape under which all views list their elements in the same row-major order, with as few axes as possible. [4, 8]
 * and [32] share the box [32] if the first is contiguous, and [4, 8] if not. Null if there is none, as for different
 * counts, or for [2, 3] and [3, 2] with padded rows. Axes of one element are dropped.
 */
export function commonBox(views: readonly Pick<View, "shape" | "strides">[]): CommonBox | null {
  const walks = views.map(mergeAxes);
  if (walks.some((walk) => walk === null)) return emptyBox(views);
  const shape: number[] = [];
  const strides: number[][] = views.map(() => []);
  const rests = walks.map((walk) => [...(walk ?? [])]);
  for (;;) {
    const open = rests.filter((rest) => rest.length > 0);
    if (open.length === 0) break;
    if (open.length < rests.length) return null;
    const extent = Math.min(...rests.map((rest) => at(rest, rest.length - 1).extent));
    for (const [i, rest] of rests.entries()) {
      const axis = at(rest, rest.length - 1);
      if (axis.extent % extent !== 0) return null;
      at(strides, i).unshift(axis.stride);
      rest.pop();
      if (axis.extent > extent) rest.push({ extent: axis.extent / extent, stride: axis.stride * extent });
    }
    shape.unshift(extent);
  }
  return { shape, strides };
}

interface Axis {
  readonly extent: number;
  readonly stride: number;
}

/** Axes outermost first, merged if contiguous, without axes of one element; null if there are no elements. */
function mergeAxes({ shape, strides }: Pick<View, "shape" | "strides">): readonly Axis[] | null {
  const merged: Axis[] = [];
  for (const [i, extent] of shape.entries()) {
    if (extent === 0) return null;
    if (extent === 1) continue;
    const stride = at(strides, i);
    const outer = merged.at(-1);
    if (outer?.stride === stride * extent) merged[merged.length - 1] = { extent: outer.extent * extent, stride };
    else merged.push({ extent, stride });
  }
  return merged;
}

function emptyBox(views: readonly Pick<View, "shape">[]): CommonBox | null {
  if (views.some(({ shape }) => elementCount(shape) > 0)) return null;
  return { shape: [0], strides: views.map(() => [1]) };
}

/** The views under their common box; null if they have none. Views of equal shape are returned unchanged. */
export function alignViews(views: readonly View[]): readonly View[] | null {
  if (views.every(({ shape }) => sameNumbers(shape, at(views, 0).shape))) return views;
  const box = commonBox(views);
  return box === null ? null : views.map((view, i) => ({ ...view, shape: box.shape, strides: at(box.strides, i) }));
}

/**
 * Whether elements of the view share bytes, as along axes of stride 0 and in windows that overlap. Also true for axes of
 * which none steps over the other, as strides 3 and 2 over 2 x 3 elements: no view of a tensor has them.
 */
export function repeatsElements({ shape, strides }: Pick<View, "shape" | "strides">): boolean {
  if (shape.includes(0)) return false;
  if (isApart(shape, strides)) return false;
  const order = shape.map((_, axis) => axis).sort((a, b) => at(strides, b) - at(strides, a));
  return !isApart(
    order.map((axis) => at(shape, axis)),
    order.map((axis) => at(strides, axis)),
  );
}

/** Whether each axis steps over all inner ones. */
function isApart(shape: readonly number[], strides: readonly number[]): boolean {
  let span = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const [extent, stride] = [at(shape, axis), at(strides, axis)];
    if (extent === 1) continue;
    if (stride < span) return false;
    span += (extent - 1) * stride;
  }
  return true;
}

/** Whether two views are equal: the same elements of one buffer under the same shape. */
export function sameView(a: View, b: View): boolean {
  return (
    a.buffer === b.buffer &&
    a.offset === b.offset &&
    a.dtype === b.dtype &&
    sameNumbers(a.shape, b.shape) &&
    a.strides.every((stride, axis) => stride === b.strides[axis] || a.shape[axis] === 1)
  );
}

export function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** The byte after the last one. */
export function endOfView({ dtype, shape, strides }: Omit<View, "buffer" | "offset">, offset: number): number {
  const last = shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(strides, axis), 0);
  return offset + (last + 1) * dtypes[dtype].bytes;
}
