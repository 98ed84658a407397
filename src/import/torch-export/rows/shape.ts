/** Rows of ATen ops that arrange elements: views, joins and parts. */
import type { Extent } from "../../../ir/api/extent.ts";
import { inDType, scatterSet } from "../../../ir/api/ops/compositions/compose.ts";
import { iota } from "../../../ir/api/ops/creation.ts";
import { indexSelect } from "../../../ir/api/ops/indexing.ts";
import { cat, chunk, expand, pad, repeatInterleave, split, unsqueeze } from "../../../ir/api/ops/shape.ts";
import { reshape, select, slice, squeeze } from "../../../ir/api/ops/views.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { rowsAt } from "../../../ir/gradients/rules.ts";
import { constantValue, extentsDiffer, foldAdd, foldProduct } from "../../../ir/scalar/fold.ts";
import { constant, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at } from "../../../support/invariant.ts";
import { alongAxis, permutedTo, withAxes } from "../../views.ts";
import { axisIn, type NodeOperands, swapped } from "../operands.ts";
import { castNumber } from "./elementwise.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";

/** Reshapes in a row are one, and a reshape back is none: a batch that is merged for one op stays whole for others. */
export function reshaped(o: NodeOperands, x: TensorView, shape: readonly Extent[]): TensorView {
  const { provenance } = o.building;
  const made = provenance.get(x.id);
  const base = made?.kind === "reshape" ? made.of : x;
  if (sameShape(base, shape)) return base;
  const y = reshape(base, base === x ? shape : (known(x, shape) ?? shape));
  provenance.set(y.id, { kind: "reshape", of: base });
  return y;
}

/** The shape with its -1 filled in; null where the sizes are symbolic. */
function known(x: TensorView, shape: readonly Extent[]): readonly Extent[] | null {
  if (!shape.includes(-1)) return shape;
  const total = constantValue(foldProduct(x.extents));
  const others = shape.filter((extent) => extent !== -1);
  if (total === null || !others.every((extent) => typeof extent === "number")) return null;
  const product = others.reduce((each, extent) => each * extent, 1);
  return shape.map((extent) => (extent === -1 ? total / product : extent));
}

function sameShape(x: TensorView, shape: readonly Extent[]): boolean {
  const wanted = known(x, shape);
  return (
    wanted?.length === x.rank &&
    wanted.every((extent, axis) => {
      const scalar = scalarIn(extent);
      const own = at(x.extents, axis);
      return !extentsDiffer(scalar, own) && (scalar.kind === own.kind || scalar === own);
    })
  );
}

export function scalarIn(extent: Extent): Scalar {
  if (typeof extent === "number") return constant(extent);
  return "kind" in extent ? extent : extent.extent;
}

const view: AtenRow = (o) => reshaped(o, o.tensor("self"), o.sizes(o.has("size") ? "size" : "shape"));

const flatten: AtenRow = (o) => {
  const x = o.tensor("self");
  if (x.rank === 0) return reshaped(o, x, [1]);
  const [first, last] = [axisIn(o.whole("start_dim", 0), x.rank), axisIn(o.whole("end_dim", -1), x.rank)];
  const merged = foldProduct(x.extents.slice(first, last + 1));
  return reshaped(o, x, [...x.extents.slice(0, first), merged, ...x.extents.slice(last + 1)]);
};

const unflatten: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = axisIn(o.whole("dim"), x.rank);
  return reshaped(o, x, [...x.extents.slice(0, axis), ...o.sizes("sizes"), ...x.extents.slice(axis + 1)]);
};

const permuteRow: AtenRow = (o) => {
  const x = o.tensor("self");
  const order = o.wholes("dims").map((axis) => axisIn(axis, x.rank));
  return permutedTo(x, order);
};

const transpose: AtenRow = (o) => swapped(o.tensor("self"), o.whole("dim0"), o.whole("dim1"));

const lastTwo: AtenRow = (o) => {
  const x = o.tensor("self");
  return x.rank < 2 ? x : swapped(x, -2, -1);
};

/** Adds leading axes of extent 1 for those that the tensor lacks. */
export function expanded(o: NodeOperands, x: TensorView, shape: readonly Extent[]): TensorView {
  const whole = x.rank >= shape.length ? x : withAxes(x, 0, shape.length - x.rank);
  const wanted = shape.map((extent, axis) => (extent === -1 ? at(whole.extents, axis) : extent));
  if (sameShape(whole, wanted)) return whole;
  const y = expand(whole, wanted);
  o.building.provenance.set(y.id, { kind: "expand", of: whole });
  return y;
}

const unsqueezeRow: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = o.whole("dim");
  const y = unsqueeze(x, axis);
  o.building.provenance.set(y.id, { kind: "unsqueeze", of: x, axis: axisIn(axis, x.rank + 1) });
  return y;
};

const squeezeRow: AtenRow = (o) => {
  const x = o.tensor("self");
  const given = o.has("dim") ? o.wholes("dim").map((axis) => axisIn(axis, x.rank)) : [...x.extents.keys()];
  // An axis of a tensor without axes is none.
  const axes = given.filter((axis) => axis in x.extents && constantValue(at(x.extents, axis)) === 1);
  return axes.length === 0 ? x : squeeze(x, axes);
};

interface AxisRange {
  readonly axis: number;
  readonly start: Extent;
  readonly stop: Extent;
  readonly step: number;
}

/** Bounds as in Python: negative ones count from the end, and all are cut at the ends. */
export function sliceRangeOf(o: NodeOperands, extents: readonly Extent[]): AxisRange {
  const axis = axisIn(o.whole("dim", 0), extents.length);
  const extent = scalarIn(at(extents, axis));
  const length = constantValue(extent);
  const bound = (given: Extent, fallback: Scalar): Extent => {
    if (typeof given !== "number") return given;
    if (length !== null) return Math.min(length, Math.max(0, given < 0 ? given + length : given));
    if (given === Number.MAX_SAFE_INTEGER) return fallback;
    return given < 0 ? foldAdd(extent, constant(given)) : given;
  };
  const start = bound(o.size("start", 0), extent);
  const stop = bound(o.size("end", Number.MAX_SAFE_INTEGER), extent);
  const from = typeof start === "number" && typeof stop === "number" ? Math.min(start, stop) : start;
  return { axis, start: from, stop, step: o.whole("step", 1) };
}

const sliceRow: AtenRow = (o) => {
  const x = o.tensor("self");
  const { axis, start, stop, step } = sliceRangeOf(o, x.extents);
  const extent = at(x.extents, axis);
  if (start === 0 && step === 1 && (stop === constantValue(extent) || stop === extent)) return x;
  const starts = x.extents.map((_, i) => (i === axis ? start : 0));
  const stops = x.extents.map((each, i) => (i === axis ? stop : each));
  const steps = x.extents.map((_, i) => (i === axis ? step : 1));
  return step === 1 ? slice(x, starts, stops) : slice(x, starts, stops, steps);
};

const narrow: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = axisIn(o.whole("dim"), x.rank);
  const [given, length] = [o.size("start"), o.size("length")];
  const start = typeof given === "number" && given < 0 ? foldAdd(at(x.extents, axis), constant(given)) : given;
  const stop = foldAdd(scalarIn(start), scalarIn(length));
  const starts = x.extents.map((_, i) => (i === axis ? start : 0));
  const stops = x.extents.with(axis, stop);
  return slice(x, starts, stops);
};

/** The elements before the range, `part`, and those after it. */
function replaced(x: TensorView, { axis, start, stop }: Omit<AxisRange, "step">, part: TensorView): TensorView {
  const extent = at(x.extents, axis);
  const between = (from: Extent, to: Extent): readonly TensorView[] => {
    if (!extentsDiffer(scalarIn(from), scalarIn(to))) return [];
    const starts = x.extents.map((_, i) => (i === axis ? from : 0));
    return [slice(x, starts, x.extents.with(axis, scalarIn(to)))];
  };
  const parts = [...between(0, start), part, ...between(stop, extent)];
  return parts.length === 1 ? part : cat(parts, axis);
}

const sliceScatter: AtenRow = (o) => {
  const x = o.tensor("self");
  const range = sliceRangeOf(o, x.extents);
  if (range.step === 1) return replaced(x, range, o.tensor("src"));
  const { axis, start, step } = range;
  if (typeof start !== "number") return o.refuse("a start that is symbolic, with a step", "numbers that are known");
  const src = inDType(o.tensor("src"), x.dtype);
  const index = iota(o.fusion, at(src.extents, axis), { start, step });
  return scatterSet(x, axis, ...rowsAt(axis, index, src));
};

const selectScatter: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = axisIn(o.whole("dim"), x.rank);
  const start = axisIn(o.whole("index"), constantValue(at(x.extents, axis)) ?? 0);
  return replaced(x, { axis, start, stop: start + 1 }, unsqueeze(o.tensor("src"), axis));
};

const flip: AtenRow = (o) =>
  o.wholes("dims").reduce((x, dim) => {
    const axis = axisIn(dim, x.rank);
    const count = constantValue(at(x.extents, axis));
    if (count === null) return o.refuse("an axis of symbolic size", "sizes that are known");
    return indexSelect(x, axis, iota(o.fusion, count, { start: count - 1, step: -1 }));
  }, o.tensor("self"));

/** Each with the extents of all, of which those of 1 stretch. */
const stretched: AtenRow = (o) => {
  const tensors = o.tensors("tensors");
  const rank = Math.max(...tensors.map((x) => x.rank));
  const shape = Array.from({ length: rank }, (_, axis): Extent => {
    const own = tensors.flatMap((x) => x.extents[axis - rank + x.rank] ?? []);
    return own.find((extent) => constantValue(extent) !== 1) ?? 1;
  });
  return tensors.map((x) => expanded(o, x, shape));
};

const moved: AtenRow = (o) => {
  const x = o.tensor("self");
  const [from, to] = [axisIn(o.whole("source"), x.rank), axisIn(o.whole("destination"), x.rank)];
  const others = [...x.extents.keys()].filter((axis) => axis !== from);
  return permutedTo(x, others.toSpliced(to, 0, from));
};

/** Elements that leave an axis at its end enter it at its start. Without axes, the flat tensor is rolled. */
const roll: AtenRow = (o) => {
  const given = o.tensor("self");
  const dims = o.has("dims") ? o.wholes("dims") : [];
  const flat = dims.length === 0 ? reshaped(o, given, [-1]) : given;
  const y = o.wholes("shifts").reduce((x, shift, i) => {
    const axis = axisIn(dims[i] ?? 0, x.rank);
    const extent = constantValue(at(x.extents, axis));
    if (extent === null) return o.refuse("an axis of symbolic size", "sizes that are known");
    const start = extent - (((shift % extent) + extent) % extent);
    if (start === extent) return x;
    const part = (from: number, to: number): TensorView => {
      const starts = x.extents.map((_, each) => (each === axis ? from : 0));
      return slice(x, starts, x.extents.with(axis, constant(to)));
    };
    return cat([part(start, extent), part(0, start)], axis);
  }, flat);
  return dims.length === 0 ? reshaped(o, y, given.extents) : y;
};

const selectRow: AtenRow = (o) => select(o.tensor("self"), o.whole("dim"), o.size("index"));

const catRow: AtenRow = (o) => {
  const [first, ...more] = o.tensors("tensors");
  return first === undefined || more.length > 0 ? cat(o.tensors("tensors"), o.whole("dim", 0)) : first;
};

export function stacked(tensors: readonly TensorView[], axis: number): TensorView {
  const parts = tensors.map((x) => unsqueeze(x, axis));
  return cat(parts, axis);
}

/**
 * Parts of one size as indices of an axis of their own: a packed axis, each part of which devices share, then needs no
 * communication. Null for other parts.
 */
function equalParts(x: TensorView, axis: number, count: number): readonly TensorView[] | null {
  const own = axisIn(axis, x.rank);
  const extent = constantValue(at(x.extents, own));
  if (extent === null || count < 2 || extent % count !== 0) return null;
  const packed = reshape(x, x.extents.toSpliced(own, 1, constant(count), constant(extent / count)));
  return Array.from({ length: count }, (_, i) => select(packed, own, i));
}

const splitRow: AtenRow = (o) => {
  const [x, axis] = [o.tensor("self"), o.whole("dim", 0)];
  const extent = constantValue(at(x.extents, axisIn(axis, x.rank)));
  const size = o.has("split_size") ? o.size("split_size") : null;
  const sizes = size === null ? o.sizes("split_sizes") : [size];
  const [first] = sizes;
  if (extent !== null && typeof first === "number" && sizes.every((each) => each === first)) {
    const parts = equalParts(x, axis, extent / first);
    if (parts !== null) return parts;
  }
  return split(x, typeof size === "number" ? size : sizes, axis);
};

const chunkRow: AtenRow = (o) => {
  const [x, count, axis] = [o.tensor("self"), o.whole("chunks"), o.whole("dim", 0)];
  return equalParts(x, axis, count) ?? chunk(x, count, axis);
};

const unbind: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = axisIn(o.whole("dim", 0), x.rank);
  const count = constantValue(at(x.extents, axis));
  if (count === null) return o.refuse("unbind of a symbolic size", "a size that is known");
  return Array.from({ length: count }, (_, i) => select(x, axis, i));
};

/** `tile` calls the counts dims, of which there may be fewer than axes: those of the last ones. */
const repeat: AtenRow = (o) => {
  const counts = o.wholes(o.has("dims") ? "dims" : "repeats");
  const given = o.tensor("self");
  const times = [...Array.from({ length: Math.max(0, given.rank - counts.length) }, () => 1), ...counts];
  let x = withAxes(given, 0, times.length - given.rank);
  times.forEach((count, axis) => {
    const copies = Array.from({ length: count }, () => x);
    if (count !== 1) x = cat(copies, axis);
  });
  return x;
};

const meshgrid: AtenRow = (o) => {
  const given = o.tensors("tensors").map((x) => withAxes(x, 0, 1 - x.rank));
  const extents = given.map((x) => at(x.extents, 0));
  const grids = given.map((x, axis) => expanded(o, alongAxis(x, axis, given.length), extents));
  if (o.text("indexing", "ij") === "ij" || given.length < 2) return grids;
  return grids.map((grid) => permutedTo(grid, [1, 0, ...grid.extents.slice(2).map((_, i) => 2 + i)]));
};

/** The windows of an axis stand in its place, and their elements along a new last axis. */
const windows: AtenRow = (o) => {
  const x = o.tensor("self");
  const axis = axisIn(o.whole("dimension"), x.rank);
  const [size, step] = [o.whole("size"), o.whole("step")];
  const extent = constantValue(at(x.extents, axis));
  if (extent === null) return o.refuse("unfold of a symbolic size", "a size that is known");
  const count = Math.floor((extent - size) / step) + 1;
  const elements = Array.from({ length: size }, (_, first) => {
    const starts = x.extents.map((_each, i) => (i === axis ? first : 0));
    const stops = x.extents.with(axis, constant(first + (count - 1) * step + 1));
    return slice(
      x,
      starts,
      stops,
      x.extents.map((_each, i) => (i === axis ? step : 1)),
    );
  });
  return stacked(elements, x.rank);
};

const padRow: AtenRow = (o) => {
  const x = o.tensor("self");
  if (o.text("mode", "constant") !== "constant") return o.refuse(`${o.text("mode", "")} padding`, "constant padding");
  const given = o.wholes("pad");
  const widths = x.extents.map((_, axis): readonly [number, number] => {
    const from = 2 * (x.rank - 1 - axis);
    return [given[from] ?? 0, given[from + 1] ?? 0];
  });
  return pad(x, widths, Number(castNumber(o.number("value", 0), x.dtype)));
};

export const atenShapeRows: AtenRows = atenRows({
  "view.default(self size) reshape.default(self shape) _unsafe_view.default(self size)": view,
  "view_as.default reshape_as.default(self other)": (o) => reshaped(o, o.tensor("self"), o.tensor("other").extents),
  "flatten.using_ints(self start_dim end_dim)": flatten,
  "unflatten.int(self dim sizes)": unflatten,
  "permute.default(self dims)": permuteRow,
  "transpose.int(self dim0 dim1)": transpose,
  "swapaxes.default(self axis0 axis1)": (o) => swapped(o.tensor("self"), o.whole("axis0"), o.whole("axis1")),
  "swapdims.default(self dim0 dim1)": transpose,
  "movedim.int moveaxis.int(self source destination)": moved,
  "t.default mT.default mH.default adjoint.default matrix_H.default": lastTwo,
  "numpy_T.default": (o) => permutedTo(o.tensor("self"), [...o.tensor("self").extents.keys()].toReversed()),
  "expand.default(self size)": (o) => expanded(o, o.tensor("self"), o.sizes("size")),
  "broadcast_tensors.default(tensors)": stretched,
  "broadcast_to.default(self size)": (o) => expanded(o, o.tensor("self"), o.sizes("size")),
  "ravel.default": (o) => reshaped(o, o.tensor("self"), [-1]),
  "roll.default(self shifts dims)": roll,
  "meshgrid.default meshgrid.indexing(tensors * indexing)": meshgrid,
  "unfold.default(self dimension size step)": windows,
  "expand_as.default(self other)": (o) => expanded(o, o.tensor("self"), o.tensor("other").extents),
  "unsqueeze.default(self dim)": unsqueezeRow,
  "squeeze.default squeeze.dim squeeze.dims(self dim)": squeezeRow,
  "slice.Tensor(self dim start end step)": sliceRow,
  "slice_scatter.default(self src dim start end step)": sliceScatter,
  "select_scatter.default(self src dim index)": selectScatter,
  "flip.default(self dims)": flip,
  "narrow.default(self dim start length)": narrow,
  "select.int(self dim index)": selectRow,
  "cat.default concat.default concatenate.default(tensors dim)": catRow,
  "stack.default(tensors dim)": (o) => stacked(o.tensors("tensors"), o.whole("dim", 0)),
  "split.Tensor(self split_size dim) split_with_sizes.default(self split_sizes dim) split.sizes(self split_size dim)":
    splitRow,
  "chunk.default(self chunks dim)": chunkRow,
  "unbind.int(self dim)": unbind,
  "repeat.default(self repeats) tile.default(self dims)": repeat,
  "repeat_interleave.self_int(self repeats dim * output_size)": (o) => {
    const x = o.tensor("self");
    const flat = o.has("dim") ? x : reshaped(o, x, [foldProduct(x.extents)]);
    return repeatInterleave(flat, o.whole("repeats"), o.whole("dim", 0));
  },
  "constant_pad_nd.default(self pad value) pad.default(self pad mode value)": padRow,
});
