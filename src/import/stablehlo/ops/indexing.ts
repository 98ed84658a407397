/**
 * Gather and scatter: index vectors name elements of an operand, or windows that begin there. Both are brought to one
 * form, [batch, named axes joined, other axes] with an index for each element of a window along the named axes:
 * `indexSelect` without a batch, `gather` and `scatterAdd` along the joined axis with one.
 */
import {
  add,
  clamp,
  gather,
  ge,
  indexSelect,
  le,
  logicalAnd,
  mul,
  neg,
  reshape,
  scatterAdd,
  slice,
  squeeze,
  where,
} from "../../../ir/api/ops.ts";
import { scatterSet } from "../../../ir/api/ops/compositions/compose.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, numbers, numbersIn, requireAxes } from "../read-attributes.ts";
import { readExtents } from "../../manual/parts.ts";
import { broadcastTo, expandedTo, permutedTo, withAxes } from "../../views.ts";
import { cutTo, type MlirValue, ownWhole } from "../value.ts";
import {
  contradicted,
  firstRegion,
  madeValue,
  operandAt,
  type ReadRow,
  type Reading,
  refuse,
  readRow,
  soleOpOf,
} from "./reading.ts";
import { combinerOf } from "./reductions.ts";
import { counter } from "./shape.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** The fields of both ops, which spell them differently. */
interface Fields {
  /** Of the result or the updates: the axes of a window. */
  readonly window: string;
  /** Of the operand: axes that a window does not have. */
  readonly dropped: string;
  readonly batch: string;
  readonly batchOfIndices: string;
  /** Of the operand: the axis of each entry of an index vector. */
  readonly indexed: string;
}

const gatherFields: Fields = {
  window: "offset_dims",
  dropped: "collapsed_slice_dims",
  batch: "operand_batching_dims",
  batchOfIndices: "start_indices_batching_dims",
  indexed: "start_index_map",
};

const scatterFields: Fields = {
  window: "update_window_dims",
  dropped: "inserted_window_dims",
  batch: "input_batching_dims",
  batchOfIndices: "scatter_indices_batching_dims",
  indexed: "scatter_dims_to_operand_dims",
};

interface Plan {
  readonly vectorAxis: number;
  /** The shape of the indices without the axis of the vectors. */
  readonly vectors: readonly number[];
  /** Of the operand and of `vectors`: axes that go together. */
  readonly batch: readonly number[];
  readonly vectorBatch: readonly number[];
  /** Axes of the operand whose window does not cover them, with the entry of the index vector; null begins at 0. */
  readonly named: readonly { readonly axis: number; readonly entry: number | null; readonly size: number }[];
  readonly others: readonly number[];
  /** What the axes of the result or updates are, in order: `v` of `vectors`, `o` of the operand. */
  readonly outer: readonly string[];
  /** The same in the common form. */
  readonly inner: readonly string[];
}

/** `sizes` gives the window along each axis of the operand, for the axes that windows have. */
function planOf(
  reading: Reading,
  fields: Fields,
  sizesFor: (kept: readonly number[], window: readonly number[]) => readonly number[],
): Plan {
  const { reader, op } = reading;
  const [{ type }, indices] = [operandAt(reading), operandAt(reading, 1)];
  const attribute = attributeOf(op, "dimension_numbers", "scatter_dimension_numbers");
  const body = attribute?.kind === "named" ? attribute.body : null;
  if (body?.kind !== "group") return refuse(reading, "no dimension numbers", "dimension numbers");
  const list = (name: string): readonly number[] => {
    const entry = body.entries.get(name);
    return entry === undefined ? [] : (numbersIn(entry) ?? []);
  };
  const [window, dropped, batch, indexed] = [fields.window, fields.dropped, fields.batch, fields.indexed].map(list);
  const all = type.shape.map((_, axis) => axis);
  for (const each of [dropped, batch, indexed]) requireAxes(reader, op, each ?? [], all.length);
  // The text leaves out a 0.
  const [vectorAxis = 0] = list("index_vector_dim");
  const length = indices.type.shape[vectorAxis] ?? 1;
  const batchOfIndices = list(fields.batchOfIndices);
  const kept = all.filter((axis) => dropped?.includes(axis) === false && batch?.includes(axis) === false);
  if (indexed?.length !== length || batch?.length !== batchOfIndices.length || window?.length !== kept.length) {
    contradicted(
      reading,
      "dimension numbers of other lengths",
      "an axis for each entry of a vector and each axis of a window",
    );
  }
  const sizes = sizesFor(kept, window ?? []);
  const vectors = indices.type.shape.flatMap((extent, axis) => (axis === vectorAxis ? [] : [extent]));
  const named = all.flatMap((axis) => {
    const entry = indexed?.indexOf(axis) ?? -1;
    const size = sizes[axis] ?? 1;
    if (batch?.includes(axis) === true || (entry < 0 && size === type.shape[axis])) return [];
    return [{ axis, entry: entry < 0 ? null : entry, size }];
  });
  const isNamed = new Set([...named.map(({ axis }) => axis), ...(batch ?? [])]);
  const others = all.filter((axis) => !isNamed.has(axis));
  const vectorBatch = batchOfIndices.map((axis) => (axis > vectorAxis ? axis - 1 : axis));
  const outerRank = vectors.length + kept.length;
  let [nextVector, nextKept] = [0, 0];
  const outer = Array.from({ length: outerRank }, (_, i) =>
    window?.includes(i) === true ? `o${kept[nextKept++]}` : `v${nextVector++}`,
  );
  const free = vectors.flatMap((_, i) => (vectorBatch.includes(i) ? [] : [`v${i}`]));
  const wide = named.flatMap(({ axis, size }) => (size > 1 ? [`o${axis}`] : []));
  const inner = [...vectorBatch.map((i) => `v${i}`), ...free, ...wide, ...others.map((axis) => `o${axis}`)];
  return { vectorAxis, vectors, batch: batch ?? [], vectorBatch, named, others, outer, inner };
}

/** The operand as [batch, named axes joined, others]. */
function joinedOperand(reading: Reading, value: MlirValue, plan: Plan): TensorView {
  const { batch, named, others } = plan;
  const tensor = ownWhole(reading, value);
  const order = [...batch, ...named.map(({ axis }) => axis), ...others];
  const moved = permutedTo(tensor, order);
  if (named.length === 1) return moved;
  const extents = readExtents(moved);
  const first = batch.length;
  const joined = elementCount(extents.slice(first, first + named.length));
  return reshape(moved, [...extents.slice(0, first), joined, ...extents.slice(first + named.length)]);
}

/** The index of each element of each window, as [batch, free vectors, wide axes of the window]. */
function joinedIndex(reading: Reading, plan: Plan, outside: "clamp" | "drop"): TensorView {
  const { reader } = reading;
  const { named, vectors, vectorBatch, vectorAxis } = plan;
  const value = operandAt(reading, 1);
  const { shape } = operandAt(reading).type;
  const indices = ownWhole(reading, value);
  const wide = named.filter(({ size }) => size > 1);
  const order = [...vectorBatch, ...vectors.flatMap((_, i) => (vectorBatch.includes(i) ? [] : [i]))];
  const rank = vectors.length + wide.length;
  let joined: TensorView | null = null;
  let inside: TensorView | null = null;
  for (const { axis, entry, size } of named) {
    const extent = at(shape, axis);
    let place: TensorView | null = null;
    if (entry !== null) {
      const own = permutedTo(entryOf(indices, entry, vectorAxis), order);
      const spread = withAxes(own, own.rank, wide.length);
      if (outside === "clamp") place = clamp(spread, 0, extent - size);
      else {
        const fits = logicalAnd(ge(spread, 0), le(spread, extent - size));
        inside = inside === null ? fits : logicalAnd(inside, fits);
        place = spread;
      }
    }
    if (size > 1) {
      const position = vectors.length + wide.findIndex((each) => each.axis === axis);
      const counted = counter(reader, size, position, rank, indices.dtype);
      place = place === null ? counted : add(place, counted);
    }
    if (place !== null) joined = joined === null ? place : add(mul(joined, extent), place);
    else if (joined !== null) joined = mul(joined, extent);
  }
  if (joined === null) return refuse(reading, "no indexed axis", "at least one indexed axis");
  return inside === null ? joined : where(inside, joined, -1);
}

/** Entry `i` of all index vectors. */
function entryOf(indices: TensorView, i: number, axis: number): TensorView {
  const shape = readExtents(indices);
  if (axis >= shape.length) return indices;
  const part = slice(
    indices,
    shape.map((_, each) => (each === axis ? i : 0)),
    shape.with(axis, i + 1),
  );
  return squeeze(part, [axis]);
}

/** [prefix, any] as [prefix, all of it in one axis]. */
function flatAfter(tensor: TensorView, prefix: number, count: number): TensorView {
  const extents = readExtents(tensor);
  const joined = extents.slice(prefix, prefix + count);
  return joined.length === 1
    ? tensor
    : reshape(tensor, [...extents.slice(0, prefix), elementCount(joined), ...extents.slice(prefix + count)]);
}

/** [prefix, n] as [prefix, n, others], repeated along `others`. */
function repeated(tensor: TensorView, shape: readonly number[]): TensorView {
  return expandedTo(withAxes(tensor, tensor.rank, shape.length - tensor.rank), shape);
}

/** The axes of `tensor` are `from`; the result's are `to`, with extent 1 where `from` lacks one. */
function relabelled(tensor: TensorView, from: readonly string[], to: readonly string[]): TensorView {
  const order = to.flatMap((label) => (from.includes(label) ? [from.indexOf(label)] : []));
  return broadcastTo(permutedTo(tensor, order), to.length, (axis) => !from.includes(at(to, axis)));
}

function gatherValues(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const value = operandAt(reading);
  const sizes = numbers(reader, op, ["slice_sizes"]);
  const plan = planOf(reading, gatherFields, () => sizes);
  return madeValue(reading, () => {
    const index = joinedIndex(reading, plan, "clamp");
    const prefix = plan.batch.length;
    const tensor = joinedOperand(reading, value, plan);
    if (prefix === 0) return relabelled(indexSelect(tensor, 0, index), plan.inner, plan.outer);
    const shape = readExtents(index);
    const flat = flatAfter(index, prefix, shape.length - prefix);
    const own = readExtents(tensor);
    const wanted = own.with(prefix, elementCount(shape.slice(prefix)));
    const found = gather(tensor, prefix, repeated(flat, wanted));
    const whole = [...own.slice(0, prefix), ...shape.slice(prefix), ...own.slice(prefix + 1)];
    return relabelled(reshape(found, whole), plan.inner, plan.outer);
  });
}

/** Beyond this many pairs of updates, the last of equal indices is not looked for. */
/** Of updates with equal indices the last one stays. */
function scatterValues(reading: Reading): MlirValue {
  const { operands } = reading;
  const [value, updates] = [operandAt(reading), operandAt(reading, 2)];
  if (operands.length > 3) return refuse(reading, `${operands.length} operands`, "a scatter of one tensor");
  const region = firstRegion(reading);
  const [end] = region.operations;
  const sets = region.operations.length === 1 && end?.operands[0] === region.arguments[1]?.name;
  const subtracts =
    soleOpOf(region) === "stablehlo.subtract" && region.operations[0]?.operands[0] === region.arguments[0]?.name;
  if (!sets && !subtracts && combinerOf(reading, { ...value.type, shape: [] }).reduction !== "sum") {
    return refuse(reading, "another combination", "add, subtract, or the update in place of the element");
  }
  const sizesFor = (kept: readonly number[], window: readonly number[]): readonly number[] =>
    value.type.shape.map((_, axis) =>
      kept.includes(axis) ? at(updates.type.shape, at(window, kept.indexOf(axis))) : 1,
    );
  const plan = planOf(reading, scatterFields, sizesFor);
  return madeValue(reading, () => {
    const prefix = plan.batch.length;
    const joined = joinedOperand(reading, value, plan);
    const index = joinedIndex(reading, plan, "drop");
    const count = readExtents(index).length - prefix;
    const given = updatesOf(reading, updates, plan);
    const source = subtracts ? neg(given) : given;
    const own = readExtents(joined);
    let flat = flatAfter(index, prefix, count);
    flat = repeated(flat, [...own.slice(0, prefix), at(readExtents(flat), prefix)]);
    const added = flatAfter(source, prefix, count);
    const places = repeated(flat, readExtents(added));
    const scattered = sets
      ? scatterSet(joined, prefix, places, added)
      : cutTo(value.type, scatterAdd(joined, prefix, places, added));
    return restored(scattered, value, plan);
  });
}

/** The updates as [batch, free vectors, wide axes of the window, others]. */
function updatesOf(reading: Reading, updates: MlirValue, { outer, inner }: Plan): TensorView {
  const tensor = ownWhole(reading, updates);
  const single = outer.flatMap((label, i) => (inner.includes(label) ? [] : [i]));
  const bare = single.length === 0 ? tensor : squeeze(tensor, single);
  return relabelled(
    bare,
    outer.filter((label) => inner.includes(label)),
    inner,
  );
}

/** [batch, joined, others] in the order of the operand's axes. */
function restored(tensor: TensorView, { type }: MlirValue, { batch, named, others }: Plan): TensorView {
  const order = [...batch, ...named.map(({ axis }) => axis), ...others];
  const split = order.map((axis) => at(type.shape, axis));
  const apart = named.length === 1 ? tensor : reshape(tensor, split);
  const places = type.shape.map((_, axis) => order.indexOf(axis));
  return permutedTo(apart, places);
}

export const indexingRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.gather": readRow(gatherValues),
  "stablehlo.scatter": readRow(scatterValues, "that adds, subtracts or sets"),
};
