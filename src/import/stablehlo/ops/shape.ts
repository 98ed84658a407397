/** Ops that move elements without computing. */
import { cat, full, indexSelect, iota, pad, reshape, slice, squeeze } from "../../../ir/api/ops.ts";
import { inDType } from "../../../ir/api/ops/compositions/compose.ts";
import type { Fusion } from "../../../ir/api/fusion.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import type { DType } from "../../../numerics/dtype.ts";
import { elementCount, positionOf } from "../../../numerics/tensor/host-tensor.ts";
import { at } from "../../../support/invariant.ts";
import { readConstant } from "../constants.ts";
import { attributeOf, number, numbers, requireAxes } from "../read-attributes.ts";
import { readExtents } from "../../manual/parts.ts";
import { alongAxis, broadcastTo, chosenBy, expandedTo, permutedTo, withAxes } from "../../views.ts";
import type { Reader } from "../reader.ts";
import type { Attribute } from "../syntax/nodes.ts";
import {
  dtypeIn,
  fusionOf,
  knownElements,
  sizesOf,
  splatOf,
  ownView,
  type Element,
  type MlirValue,
  ownWhole,
} from "../value.ts";
import {
  contradicted,
  foldedValue,
  madeValue,
  mostKnown,
  operandAt,
  type ReadRow,
  type Reading,
  resultType,
  readRow,
} from "./reading.ts";

/** The elements of a result, whose element `i` is element `from(i)` of the operand, if they are known. */
function movedElements(
  { reader }: Reading,
  value: MlirValue,
  shape: readonly number[],
  from: (index: readonly number[]) => readonly number[],
): readonly Element[] | null {
  if (value.known === null || value.known.length === 1) return value.known;
  const leading = sizesOf(reader, value.axes);
  const whole = [...leading, ...shape];
  const count = elementCount(whole);
  const elements = knownElements(reader, value);
  if (elements === null || count > mostKnown(value.axes)) return null;
  const own = [...leading, ...value.type.shape];
  return Array.from({ length: count }, (_, i) => {
    const index = positionOf(i, whole);
    const source = [...index.slice(0, leading.length), ...from(index.slice(leading.length))];
    return at(
      elements,
      source.reduce((sum, each, axis) => sum * at(own, axis) + each, 0),
    );
  });
}

function broadcastInDim(reading: Reading): MlirValue {
  const value = operandAt(reading);
  const type = resultType(reading);
  const { length: rank } = type.shape;
  const { reader, op } = reading;
  const dims = requireAxes(reader, op, numbers(reader, op, ["dims", "broadcast_dimensions"]), rank);
  const fits =
    dims.length === value.type.shape.length &&
    dims.every((dim, i) => {
      const extent = at(value.type.shape, i);
      return extent === 1 || extent === at(type.shape, dim);
    });
  if (!fits)
    contradicted(
      reading,
      `dims [${dims.join(", ")}] for [${value.type.shape.join(", ")}]`,
      "one for each axis, of extent 1 or of the result's",
    );
  const known = movedElements(reading, value, type.shape, (index) =>
    dims.map((dim, i) => (at(value.type.shape, i) === 1 ? 0 : at(index, dim))),
  );
  const result = foldedValue(reading, known, () => {
    const order = [...dims.keys()].toSorted((a, b) => at(dims, a) - at(dims, b));
    return broadcastTo(permutedTo(ownView(reading, value), order), rank, (axis) => !dims.includes(axis));
  });
  const counted = value.counts === undefined ? undefined : dims[value.counts];
  const isSame = counted !== undefined && at(value.type.shape, value.counts ?? 0) === at(type.shape, counted);
  return isSame ? { ...result, counts: counted } : result;
}

function reshapeValue(reading: Reading): MlirValue {
  const value = operandAt(reading);
  const { shape } = resultType(reading);
  if (elementCount(shape) !== elementCount(value.type.shape)) {
    contradicted(reading, `[${value.type.shape.join(", ")}]`, `as many elements as [${shape.join(", ")}]`);
  }
  return foldedValue(reading, value.known, () => reshaped(reading, value, shape));
}

/** Axes of extent 1 come and go without a reshape, and an axis that only repeats stays one. */
function reshaped(reading: Reading, value: MlirValue, shape: readonly number[]): TensorView {
  const own = value.type.shape;
  const [kept, wanted] = [own.filter((extent) => extent !== 1), shape.filter((extent) => extent !== 1)];
  if (kept.length === wanted.length && kept.every((extent, i) => extent === wanted[i])) {
    const tensor = ownView(reading, value);
    const dropped = own.flatMap((extent, i) => (extent === 1 ? [i] : []));
    const bare = dropped.length === 0 ? tensor : squeeze(tensor, dropped);
    return broadcastTo(bare, shape.length, (axis) => shape[axis] === 1);
  }
  return reshape(ownWhole(reading, value), shape);
}

function transposeValue(reading: Reading): MlirValue {
  const value = operandAt(reading);
  const { reader, op } = reading;
  const { length: rank } = value.type.shape;
  const order = requireAxes(reader, op, numbers(reader, op, ["dims", "permutation"]), rank);
  if (order.length !== rank) contradicted(reading, `dims [${order.join(", ")}]`, `a place for each of ${rank} axes`);
  const { shape } = resultType(reading);
  const known = movedElements(reading, value, shape, (index) => order.map((_, axis) => at(index, order.indexOf(axis))));
  return foldedValue(reading, known, () => permutedTo(ownView(reading, value), order));
}

/** `slice %x [0:2, 4:8:2]`, and `start_indices`, `limit_indices`, `strides`. */
function sliceValue(reading: Reading): MlirValue {
  const value = operandAt(reading);
  const { reader, op } = reading;
  const { shape } = value.type;
  const [list] = op.items;
  const bounds = list?.kind === "group" ? list.items.map(boundsOf) : [];
  const ones = shape.map(() => 1);
  const starts = list === undefined ? numbers(reader, op, ["start_indices"]) : bounds.map(([start]) => start);
  const stops = list === undefined ? numbers(reader, op, ["limit_indices"]) : bounds.map(([, stop]) => stop);
  const steps = list === undefined ? numbers(reader, op, ["strides"], ones) : bounds.map(([, , step]) => step);
  const fits = shape.every((extent, i) => {
    const [start = -1, stop = -1, step = 0] = [starts[i], stops[i], steps[i]];
    return start >= 0 && start <= stop && stop <= extent && step >= 1;
  });
  if (!fits || starts.length !== shape.length) {
    contradicted(reading, `bounds outside of [${shape.join(", ")}]`, "start <= stop <= extent for each axis");
  }
  const known = movedElements(reading, value, resultType(reading).shape, (index) =>
    index.map((each, i) => at(starts, i) + each * at(steps, i)),
  );
  return foldedValue(reading, known, () =>
    sliced(fusionOf(reader), ownView(reading, value), shape, { starts, stops, steps }),
  );
}

interface Cut {
  readonly starts: readonly number[];
  readonly stops: readonly number[];
  readonly steps: readonly number[];
}

/** A slice of a tensor that may only repeat along some axes of `shape`. */
export function sliced(fusion: Fusion, tensor: TensorView, shape: readonly number[], cut: Cut): TensorView {
  const own = readExtents(tensor);
  const all = own.map((extent, i) => {
    const repeats = extent !== at(shape, i);
    return repeats ? [0, extent, 1] : [at(cut.starts, i), at(cut.stops, i), at(cut.steps, i)];
  });
  if (all.some(([start, stop]) => start === stop)) {
    const extents = all.map(([start = 0, stop = 0, step = 1]) => Math.ceil((stop - start) / step));
    return full(fusion, extents, 0, tensor.dtype);
  }
  if (all.every(([start, stop, step], i) => start === 0 && stop === own[i] && step === 1)) return tensor;
  const [starts, stops, steps] = [0, 1, 2].map((part) => all.map((bounds) => at(bounds, part)));
  return slice(tensor, starts ?? [], stops ?? [], steps);
}

function boundsOf(attribute: Attribute): readonly [number, number, number] {
  const parts = attribute.kind === "sequence" ? attribute.parts : [attribute];
  const [start = -1, stop = -1, step = 1] = parts.flatMap((part) =>
    part.kind === "number" ? [Number(part.text)] : [],
  );
  return [start, stop, step];
}

function padValue(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const [value, filler] = [operandAt(reading), operandAt(reading, 1)];
  const { shape } = value.type;
  const [low, high, interior] = ["low", "high", "interior"].map((name) =>
    numbers(reader, op, [name, `edge_padding_${name}`, `${name}_padding`]),
  );
  if ([low, high, interior].some((list) => list?.length !== shape.length)) {
    contradicted(reading, "widths of another number of axes", `low, high and interior for ${shape.length} axes`);
  }
  const widths = shape.map((_, i) => [at(low ?? [], i), at(high ?? [], i)] as const);
  // Nothing of the operand is left.
  const isGone = widths.some((each, i) => {
    const extent = at(shape, i) + Math.max(0, at(shape, i) - 1) * at(interior ?? [], i);
    return each.some((width) => width < -extent);
  });
  const padded = (tensor: TensorView, element: Element): TensorView =>
    spacedBy(tensor, interior ?? [], element, widths);
  return madeValue(reading, () => {
    const [tensor, element] = [ownWhole(reading, value), splatOf(filler)];
    if (isGone) return expandedTo(withAxes(ownView(reading, filler), 0, shape.length), resultType(reading).shape);
    if (element !== null) return padded(tensor, element);
    const isOwn = padded(full(fusionOf(reader), shape, true, "bool"), 0);
    return chosenBy(isOwn, padded(tensor, 0), ownView(reading, filler));
  });
}

type Widths = readonly (readonly [before: number, after: number])[];

/**
 * With gaps between elements, and padded. Each becomes one of a row of its own, the first if nothing is before it: where
 * the widths complete the rows, an axis that devices share stays where it is.
 */
export function spacedBy(tensor: TensorView, gaps: readonly number[], element: Element, around?: Widths): TensorView {
  const left = gaps.map((_, axis) => around?.[axis] ?? ([0, 0] as const));
  const spaced = gaps.reduce((before, gap, axis) => {
    const extents = readExtents(before);
    if (gap <= 0 || at(extents, axis) === 0) return before;
    const [low, high] = at(left, axis);
    const first = Math.min(Math.max(low, 0), gap);
    left[axis] = [low - first, high - (gap - first)];
    const row = [first, gap - first] as const;
    const widths: Widths = Array.from({ length: extents.length + 1 }, (_, i) => (i === axis + 1 ? row : [0, 0]));
    const rows = pad(withAxes(before, axis + 1, 1), widths, element);
    return reshape(rows, extents.with(axis, at(extents, axis) * (gap + 1)));
  }, tensor);
  return left.every((own) => own.every((width) => width === 0)) ? spaced : pad(spaced, left, element);
}

function concatenate(reading: Reading): MlirValue {
  const { reader, op, operands } = reading;
  const { shape } = operandAt(reading).type;
  const axis = number(reader, op, ["dim", "dimension"]);
  requireAxes(reader, op, [axis], shape.length);
  return madeValue(reading, () => {
    const tensors = operands.map((value) => ownWhole(reading, value));
    return tensors.length === 1 ? at(tensors, 0) : cat(tensors, axis);
  });
}

function iotaValue(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const type = resultType(reading);
  const axis = number(reader, op, ["dim", "iota_dimension"]);
  requireAxes(reader, op, [axis], type.shape.length);
  const extent = at(type.shape, axis);
  const count = elementCount(type.shape);
  const isWide = dtypeIn(type) === "int64";
  const isFloat = type.element.includes("f");
  const known =
    count <= mostKnown([]) && !isFloat
      ? Array.from({ length: count }, (_, i) => {
          const index = at(positionOf(i, type.shape), axis);
          return isWide ? BigInt(index) : index;
        })
      : null;
  const counted = (): TensorView => {
    const dtype = dtypeIn(type);
    return inDType(counter(reader, extent, axis, type.shape.length, dtype), dtype);
  };
  return { ...foldedValue(reading, known, counted), counts: axis };
}

/** 0, 1, ... along one axis of a tensor of `rank` axes, the others of extent 1. */
export function counter(reader: Reader, extent: number, axis: number, rank: number, dtype: DType): TensorView {
  const counted = iota(fusionOf(reader), extent, { dtype: dtype === "int64" ? "int64" : "int" });
  return alongAxis(counted, axis, rank);
}

/** From the last index to the first. */
function reverseValue(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const value = operandAt(reading);
  const { shape } = value.type;
  const reversed = requireAxes(reader, op, numbers(reader, op, ["dims", "dimensions"]), shape.length);
  const known = movedElements(reading, value, shape, (index) =>
    index.map((each, i) => (reversed.includes(i) ? at(shape, i) - 1 - each : each)),
  );
  return foldedValue(reading, known, () =>
    reversed.reduce(
      (tensor, axis) => {
        const extent = at(readExtents(tensor), axis);
        if (extent === 1) return tensor;
        return indexSelect(tensor, axis, iota(fusionOf(reader), extent, { start: extent - 1, step: -1 }));
      },
      ownView(reading, value),
    ),
  );
}

/** The same value under another name. */
export const identityRow: ReadRow = { read: ({ operands }) => operands };

export const shapeRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.constant": constantRow(),
  "sdy.constant": constantRow(),
  "stablehlo.iota": readRow(iotaValue),
  "stablehlo.broadcast_in_dim": readRow(broadcastInDim),
  "stablehlo.broadcast": readRow((reading) => {
    const value = operandAt(reading);
    const sizes = numbers(reading.reader, reading.op, ["sizes", "broadcast_sizes"]);
    return madeValue(reading, () => withAxes(ownView(reading, value), 0, sizes.length));
  }),
  "stablehlo.reshape": readRow(reshapeValue),
  "stablehlo.transpose": readRow(transposeValue),
  "stablehlo.slice": readRow(sliceValue),
  "stablehlo.pad": readRow(padValue),
  "stablehlo.concatenate": readRow(concatenate),
  "stablehlo.reverse": readRow(reverseValue),
  "stablehlo.optimization_barrier": { ...identityRow, note: "has no effect" },
};

function constantRow(): ReadRow {
  return readRow((reading) => {
    const { reader, op } = reading;
    const attribute = attributeOf(op, "value") ?? op.items[0] ?? null;
    return readConstant(reader, op, resultType(reading), attribute);
  });
}
