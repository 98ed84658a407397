/** Slices at positions that the file or a run gives. Positions are clamped, so that a slice lies inside. */
import {
  add,
  broadcast,
  clamp,
  eq,
  expand,
  gather,
  ge,
  indexSelect,
  iota,
  logicalAnd,
  lt,
  pad,
  squeeze,
  sub,
  where,
} from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import type { DType } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { numbers } from "../read-attributes.ts";
import { readExtents } from "../../manual/parts.ts";
import { type Reader } from "../reader.ts";
import { splatOf, tensorOn, type MlirValue, wholeOn } from "../value.ts";
import { contradicted, madeValue, operandAt, type ReadRow, type Reading, readRow } from "./reading.ts";
import { sliced } from "./shape.ts";

/** Where a slice begins along one axis: clamped, as a number if the file says it. */
type Start = { readonly kind: "known"; readonly index: number } | { readonly kind: "run"; readonly value: MlirValue };

function startsOf(reading: Reading, values: readonly MlirValue[], room: readonly number[]): readonly Start[] {
  if (values.length !== room.length) {
    contradicted(reading, `${values.length} positions`, `one for each of ${room.length} axes`);
  }
  return values.map((value, axis): Start => {
    const known = splatOf(value);
    const most = at(room, axis);
    if (!(most >= 0)) contradicted(reading, "a slice larger than its operand", "a slice that fits");
    // A slice of the whole axis has one place.
    if (most === 0) return { kind: "known", index: 0 };
    return known === null
      ? { kind: "run", value }
      : { kind: "known", index: Math.min(Math.max(Number(known), 0), most) };
  });
}

/** A scalar position, at most `most`, as a tensor whose axes after the leading ones have the extent 1. */
function startOn(value: MlirValue, axes: readonly string[], rank: number, most: number): TensorView {
  const tensor = clamp(tensorOn(value, axes), 0, most);
  return broadcast(tensor, [...axes.map(() => false), ...Array.from({ length: rank }, () => true)]);
}

/** 0, 1, ... along one axis of a tensor of `rank` axes, the others of extent 1. */
export function counter({ fusion }: Reader, extent: number, axis: number, rank: number, dtype: DType): TensorView {
  const counted = iota(fusion, extent, { dtype: dtype === "int64" ? "int64" : "int" });
  return broadcast(
    counted,
    Array.from({ length: rank }, (_, i) => i !== axis),
  );
}

/** The elements at `index` along an axis; `index` has the extent 1 on other axes, but perhaps on leading ones. */
function selectAlong(tensor: TensorView, index: TensorView, axis: number): TensorView {
  const [own, wanted] = [readExtents(tensor), readExtents(index)];
  const others = wanted.flatMap((_, i) => (i === axis ? [] : [i]));
  if (others.every((i) => wanted[i] === 1)) return indexSelect(tensor, axis, squeeze(index, others));
  const wide = own.map((extent, i) => Math.max(extent, at(wanted, i)));
  return gather(
    stretched(tensor, wide.with(axis, at(own, axis))),
    axis,
    stretched(index, wide.with(axis, at(wanted, axis))),
  );
}

function stretched(tensor: TensorView, shape: readonly number[]): TensorView {
  return readExtents(tensor).every((extent, i) => extent === shape[i]) ? tensor : expand(tensor, shape);
}

function dynamicSlice(reading: Reading, axes: readonly string[]): MlirValue {
  const { reader, op, operands } = reading;
  const value = operandAt(reading);
  const { shape } = value.type;
  const sizes = numbers(reader, op, ["sizes", "slice_sizes"]);
  const room = shape.map((extent, i) => extent - (sizes[i] ?? Number.NaN));
  const starts = startsOf(reading, operands.slice(1), room);
  return madeValue(reading, axes, () => {
    const isAtRun = starts.some(({ kind }) => kind === "run");
    const part = sliced(isAtRun ? wholeOn(reader, value, axes) : tensorOn(value, axes), axes, shape, {
      starts: starts.map((start) => (start.kind === "known" ? start.index : 0)),
      stops: starts.map((start, i) => (start.kind === "known" ? start.index + at(sizes, i) : at(shape, i))),
      steps: shape.map(() => 1),
    });
    return starts.reduce((tensor, start, i) => {
      if (start.kind === "known") return tensor;
      const axis = axes.length + i;
      const first = startOn(start.value, axes, shape.length, at(room, i));
      const size = at(sizes, i);
      return selectAlong(
        tensor,
        size === 1 ? first : add(first, counter(reader, size, axis, tensor.rank, first.dtype)),
        axis,
      );
    }, part);
  });
}

/** Elements in the slice are the update's, which is first moved to where the slice lies. */
function dynamicUpdateSlice(reading: Reading, axes: readonly string[]): MlirValue {
  const { reader, operands } = reading;
  const [value, update] = [operandAt(reading), operandAt(reading, 1)];
  const { shape } = value.type;
  const room = shape.map((extent, i) => extent - (update.type.shape[i] ?? Number.NaN));
  const starts = startsOf(reading, operands.slice(2), room);
  return madeValue(reading, axes, () => {
    const rank = axes.length + shape.length;
    let moved = wholeOn(reader, update, axes);
    let inside: TensorView | null = null;
    starts.forEach((start, i) => {
      const [axis, extent, size] = [axes.length + i, at(shape, i), at(update.type.shape, i)];
      if (size === extent) return;
      let here: TensorView;
      if (start.kind === "known") {
        const places = broadcast(iota(reader.fusion, extent, { dtype: "int" }), flagsBut(rank, axis));
        const [from, to] = [start.index, start.index + size];
        here = logicalAnd(ge(places, from), lt(places, to));
        moved = pad(
          moved,
          readExtents(moved).map((_, each) => (each === axis ? [from, extent - to] : [0, 0])),
        );
      } else {
        const first = startOn(start.value, axes, shape.length, at(room, i));
        const places = counter(reader, extent, axis, rank, first.dtype);
        if (size === 1) here = eq(places, first);
        else {
          const offset = sub(places, first);
          here = logicalAnd(ge(offset, 0), lt(offset, size));
          moved = selectAlong(moved, clamp(offset, 0, size - 1), axis);
        }
      }
      inside = inside === null ? here : logicalAnd(inside, here);
    });
    return inside === null ? moved : where(inside, moved, tensorOn(value, axes));
  });
}

function flagsBut(rank: number, axis: number): readonly boolean[] {
  return Array.from({ length: rank }, (_, i) => i !== axis);
}

export const sliceRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.dynamic_slice": readRow(dynamicSlice),
  "stablehlo.dynamic_update_slice": readRow(dynamicUpdateSlice),
};
