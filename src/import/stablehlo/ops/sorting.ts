/**
 * Sorting by rank: an element's place is the number of elements that come before it. That compares all pairs along the
 * axis, so only short axes are sorted. `top_k` takes the largest element k times.
 */
import {
  amax,
  amin,
  broadcast,
  cast,
  cat,
  eq,
  gt,
  isnan,
  logicalAnd,
  logicalNot,
  logicalOr,
  lt,
  scatterAdd,
  sum,
  where,
  zeros,
} from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { number, requireAxes } from "../read-attributes.ts";
import { madeAt } from "../../origins.ts";
import { readExtents } from "../reader.ts";
import { manualAxes, dtypeIn, splat, splatOf, type MlirValue, wholeOn } from "../value.ts";
import { firstRegion, madeValue, operandAt, type ReadRow, type Reading, refuse, resultType } from "./reading.ts";
import { counter } from "./slices.ts";

/** Pairs grow with the square of the extent. */
const mostSorted = 4096;
const mostTaken = 64;

function sortValues(reading: Reading): readonly MlirValue[] {
  const { reader, op, operands } = reading;
  const axes = manualAxes(reader, operands);
  const { shape } = operandAt(reading).type;
  const dimension = number(reader, op, ["dimension"], -1);
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  requireAxes(reader, op, [axis], shape.length);
  const extent = at(shape, axis);
  if (extent > mostSorted)
    refuse(reading, `an axis of ${extent}`, `at most ${mostSorted} elements along the sorted axis`);
  const direction = directionOf(reading);
  const place = axes.length + axis;
  const { tensors, ranks } = madeAt(reader, op.position, () => {
    const whole = operands.map((value) => wholeOn(reader, value, axes, true));
    return { tensors: whole, ranks: ranksOf(reading, at(whole, 0), place, direction) };
  });
  return tensors.map((tensor, i) => madeValue(reading, axes, () => scattered(reading, tensor, ranks, place), null, i));
}

/** Whether the region puts smaller elements first, tried on two pairs. */
function directionOf(reading: Reading): "ascending" | "descending" {
  const { reader, operands } = reading;
  const region = firstRegion(reading);
  const isFirst = (a: number, b: number): boolean => {
    const scalars = operands.flatMap(({ type }) =>
      [a, b].map((element) => splat(reader, { element: type.element, shape: [] }, toElement(element, type.element))),
    );
    const [result] = reading.region(region, scalars);
    return result !== undefined && Number(splatOf(result) ?? 0) === 1;
  };
  const found = [isFirst(0, 1), isFirst(1, 0), isFirst(1, 1)].join(" ");
  if (found === "true false false") return "ascending";
  if (found === "false true false") return "descending";
  return refuse(reading, "an order of another form", "a comparison of the first operand by LT or GT");
}

function toElement(value: number, element: string): number | bigint {
  return element === "i64" || element === "ui32" ? BigInt(value) : value;
}

/** The place of each element in the order, in which equal elements keep theirs. */
function ranksOf(
  { reader }: Reading,
  tensor: TensorView,
  axis: number,
  direction: "ascending" | "descending",
): TensorView {
  const shape = readExtents(tensor);
  const extent = at(shape, axis);
  const flags = (own: number): readonly boolean[] => Array.from({ length: shape.length + 1 }, (_, i) => i === own);
  const [mine, other] = [broadcast(tensor, flags(axis + 1)), broadcast(tensor, flags(axis))];
  const rank = shape.length + 1;
  const [i, j] = [counter(reader, extent, axis, rank, "int"), counter(reader, extent, axis + 1, rank, "int")];
  const isBefore = direction === "ascending" ? lt(other, mine) : gt(other, mine);
  const before = logicalOr(isBefore, logicalAnd(eq(other, mine), lt(j, i)));
  return sum(cast(before, "int"), [axis + 1]);
}

function scattered({ reader }: Reading, tensor: TensorView, ranks: TensorView, axis: number): TensorView {
  const isBool = tensor.dtype === "bool";
  const numbers = isBool ? cast(tensor, "int") : tensor;
  const sorted = scatterAdd(zeros(reader.fusion, readExtents(tensor), numbers.dtype), axis, ranks, numbers);
  return isBool ? cast(sorted, "bool") : sorted;
}

/** `%values, %indices = chlo.top_k(%x, k = 2)`, along the last axis. */
function topK(reading: Reading): readonly MlirValue[] {
  const { reader, op, operands } = reading;
  const axes = manualAxes(reader, operands);
  const value = operandAt(reading);
  const k = number(reader, op, ["k"]);
  const axis = axes.length + value.type.shape.length - 1;
  if (k > mostTaken) refuse(reading, `k = ${k}`, `at most ${mostTaken}`);
  const { family } = dtypes[dtypeIn(value.type)];
  if (family !== "float") refuse(reading, value.type.element, "floats");
  const { values, indices } = madeAt(reader, op.position, () =>
    largest(reading, wholeOn(reader, value, axes, true), axis, k),
  );
  const joined = (list: readonly TensorView[]): TensorView => (list.length === 1 ? at(list, 0) : cat(list, axis));
  return [
    madeValue(reading, axes, () => joined(values)),
    madeValue(reading, axes, () => cast(joined(indices), dtypeIn(resultType(reading, 1))), null, 1),
  ];
}

/** The k largest elements and their indices, each with an axis of extent 1. NaN is the largest, and the first wins. */
function largest(
  { reader }: Reading,
  tensor: TensorView,
  axis: number,
  k: number,
): { readonly values: readonly TensorView[]; readonly indices: readonly TensorView[] } {
  const [values, indices]: [TensorView[], TensorView[]] = [[], []];
  const keep = [...Array.from({ length: tensor.rank - 1 }, () => false), true];
  const places = counter(reader, at(readExtents(tensor), axis), axis, tensor.rank, "int");
  let taken: TensorView | null = null;
  for (let i = 0; i < k; i++) {
    const most = broadcast(amax(taken === null ? tensor : where(taken, -Infinity, tensor), [axis]), keep);
    const isMost = logicalOr(eq(tensor, most), isnan(tensor));
    const isFree = taken === null ? isMost : logicalAnd(isMost, logicalNot(taken));
    const index = broadcast(amin(where(isFree, places, 2 ** 31 - 1), [axis]), keep);
    values.push(most);
    indices.push(index);
    const isTaken = eq(places, index);
    taken = taken === null ? isTaken : logicalOr(taken, isTaken);
  }
  return { values, indices };
}

export const sortingRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.sort": { read: sortValues, note: `by one operand, of at most ${mostSorted} elements along the axis` },
  "chlo.top_k": { read: topK, note: `of floats, k up to ${mostTaken}` },
};
