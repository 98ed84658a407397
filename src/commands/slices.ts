/**
 * Cuts a tensor into one slice per member of a team, for collectives that share their work. Slices are boxes, so that every member's
 * view of one is a view; they begin at multiples of 16 bytes where there is enough to share, for vector loads and stores.
 *
 *   [1000] floats for 4 members: [0, 248), [248, 500), [500, 748), [748, 1000)
 */
import { at, invariant } from "../support/invariant.ts";
import type { View } from "./transfer.ts";
import { type CommonBox, commonBox, narrowView, sameNumbers } from "./view.ts";

export interface Slices {
  /** Of the tensor, as the members' common box. */
  readonly shape: readonly number[];
  readonly axis: number;
  /** Slice i holds [bounds[i], bounds[i + 1]) of the axis: none where they are equal. */
  readonly bounds: readonly number[];
}

const alignment = 16;

/** The box under which views are cut: of at least one axis. Null where they have none in common. */
export function boxToCut(views: readonly View[]): CommonBox | null {
  const box = commonBox(views);
  if (box === null || box.shape.length > 0) return box;
  return { shape: [1], strides: views.map(() => [1]) };
}

/** `shape` is that of a `boxToCut`. */
export function cutIntoSlices(shape: readonly number[], elementBytes: number, count: number): Slices {
  const found = shape.findIndex((extent) => extent >= count);
  const axis = found >= 0 ? found : shape.indexOf(Math.max(...shape));
  const extent = at(shape, axis);
  const wanted = axis === shape.length - 1 ? alignment / elementBytes : 1;
  const unit = extent >= count * wanted ? wanted : 1;
  const units = Math.ceil(extent / unit);
  const bounds = Array.from({ length: count + 1 }, (_, i) => Math.min(extent, Math.floor((i * units) / count) * unit));
  return { shape, axis, bounds };
}

/** Positions whose slice is not empty: all, unless there is less to share than members. */
export function positionsWithSlice({ bounds }: Slices): readonly number[] {
  return bounds.slice(1).flatMap((end, position) => (end > at(bounds, position) ? [position] : []));
}

/** Slice `index` of one of the views that were cut, whatever its own shape. */
export function sliceOf(view: View, slices: Slices, index: number): View {
  const { axis, bounds } = slices;
  const start = at(bounds, index);
  return narrowView(underShape(view, slices.shape), axis, start, at(bounds, index + 1) - start);
}

/** The view under a shape that cuts its axes more finely: beside a view of that shape none of whose axes join. */
function underShape(view: View, shape: readonly number[]): View {
  const apart = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis--) apart[axis] = at(apart, axis + 1) * at(shape, axis + 1) + 1;
  const box = boxToCut([view, { ...view, shape, strides: apart }]);
  invariant(box !== null && sameNumbers(box.shape, shape), "a view is cut under a box that it has", { view, shape });
  return { ...view, shape, strides: at(box.strides, 0) };
}
