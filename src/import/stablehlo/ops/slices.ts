/** Slices at positions that the file or a run gives. Positions are clamped, so that a slice lies inside. */
import { add, clamp, eq, ge, indexSelect, iota, logicalAnd, lt, pad, sub } from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { numbers } from "../read-attributes.ts";
import { alongAxis, chosenBy } from "../../views.ts";
import { fusionOf, splatOf, ownView, type MlirValue, ownWhole } from "../value.ts";
import { contradicted, madeValue, operandAt, type ReadRow, type Reading, readRow } from "./reading.ts";
import { counter, sliced } from "./shape.ts";

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

function dynamicSlice(reading: Reading): MlirValue {
  const { reader, op, operands } = reading;
  const value = operandAt(reading);
  const { shape } = value.type;
  const sizes = numbers(reader, op, ["sizes", "slice_sizes"]);
  const room = shape.map((extent, i) => extent - (sizes[i] ?? Number.NaN));
  const starts = startsOf(reading, operands.slice(1), room);
  return madeValue(reading, () => {
    const isAtRun = starts.some(({ kind }) => kind === "run");
    const part = sliced(fusionOf(reader), isAtRun ? ownWhole(reading, value) : ownView(reading, value), shape, {
      starts: starts.map((start) => (start.kind === "known" ? start.index : 0)),
      stops: starts.map((start, i) => (start.kind === "known" ? start.index + at(sizes, i) : at(shape, i))),
      steps: shape.map(() => 1),
    });
    return starts.reduce((tensor, start, axis) => {
      if (start.kind === "known") return tensor;
      const first = clamp(ownView(reading, start.value), 0, at(room, axis));
      return indexSelect(tensor, axis, add(counter(reader, at(sizes, axis), 0, 1, first.dtype), first));
    }, part);
  });
}

/** Elements in the slice are the update's, which is first moved to where the slice lies. */
function dynamicUpdateSlice(reading: Reading): MlirValue {
  const { reader, operands } = reading;
  const [value, update] = [operandAt(reading), operandAt(reading, 1)];
  const { shape } = value.type;
  const room = shape.map((extent, i) => extent - (update.type.shape[i] ?? Number.NaN));
  const starts = startsOf(reading, operands.slice(2), room);
  if (update.type.shape.includes(0)) return value;
  return madeValue(reading, () => {
    let moved = ownWhole(reading, update);
    let inside: TensorView | null = null;
    starts.forEach((start, axis) => {
      const [extent, size] = [at(shape, axis), at(update.type.shape, axis)];
      if (size === extent) return;
      let here: TensorView;
      if (start.kind === "known") {
        const places = iota(fusionOf(reader), extent, { dtype: "int" });
        const [from, to] = [start.index, start.index + size];
        here = logicalAnd(ge(places, from), lt(places, to));
        const widths = shape.map((_, each) => (each === axis ? ([from, extent - to] as const) : ([0, 0] as const)));
        moved = pad(moved, widths);
      } else {
        const first = clamp(ownView(reading, start.value), 0, at(room, axis));
        const offset = sub(counter(reader, extent, 0, 1, first.dtype), first);
        here = size === 1 ? eq(offset, 0) : logicalAnd(ge(offset, 0), lt(offset, size));
        if (size > 1) moved = indexSelect(moved, axis, clamp(offset, 0, size - 1));
      }
      here = alongAxis(here, axis, shape.length);
      inside = inside === null ? here : logicalAnd(inside, here);
    });
    return inside === null ? moved : chosenBy(inside, moved, ownView(reading, value));
  });
}

export const sliceRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.dynamic_slice": readRow(dynamicSlice),
  "stablehlo.dynamic_update_slice": readRow(dynamicUpdateSlice),
};
