/**
 * Cuts a tensor into one slice per rank of a team, for collectives whose ranks share the work. Slices are boxes, so
 * that each rank sees a slice as a view. In a tensor that is large enough they begin at multiples of 16 bytes, for
 * vector loads and stores.
 *
 *   [1000] floats for 4 ranks: [0, 248), [248, 500), [500, 748), [748, 1000)
 */
import { at } from "../support/invariant.ts";
import { commonBox, narrowView, type View } from "./view.ts";

export interface ShareSlices {
  readonly axis: number;
  /** Slice i is [bounds[i], bounds[i + 1]) of the axis; it may be empty. */
  readonly bounds: readonly number[];
}

const alignment = 16;

/** The views under their common box, with at least one axis to cut; null if they have no common box. */
export function viewsToCut(views: readonly View[]): readonly View[] | null {
  const box = commonBox(views);
  if (box === null) return null;
  if (box.shape.length === 0) return views.map((view) => ({ ...view, shape: [1], strides: [1] }));
  return views.map((view, i) => ({ ...view, shape: box.shape, strides: at(box.strides, i) }));
}

/** `shape` is the shape of `viewsToCut`'s result. */
export function cutIntoSlices(shape: readonly number[], elementBytes: number, count: number): ShareSlices {
  const found = shape.findIndex((extent) => extent >= count);
  const axis = found >= 0 ? found : shape.indexOf(Math.max(...shape));
  const extent = at(shape, axis);
  const wanted = axis === shape.length - 1 ? alignment / elementBytes : 1;
  const unit = extent >= count * wanted ? wanted : 1;
  const units = Math.ceil(extent / unit);
  const bounds = Array.from({ length: count + 1 }, (_, i) => Math.min(extent, Math.floor((i * units) / count) * unit));
  return { axis, bounds };
}

/** Positions whose slice is not empty: all, unless the tensor has fewer elements than the team has ranks. */
export function positionsWithSlice({ bounds }: ShareSlices): readonly number[] {
  return bounds.slice(1).flatMap((end, position) => (end > at(bounds, position) ? [position] : []));
}

/** Slice `index` of one of `viewsToCut`. */
export function sliceOf(view: View, { axis, bounds }: ShareSlices, index: number): View {
  const start = at(bounds, index);
  return narrowView(view, axis, start, at(bounds, index + 1) - start);
}
