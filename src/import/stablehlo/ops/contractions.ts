/** Contractions as `matmul`: any batch, contracted and free axes, in any order. */
import { broadcast, cast, matmul, permute, reshape, squeeze } from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, numbersIn, requireAxes } from "../read-attributes.ts";
import { readExtents } from "../../manual/parts.ts";
import type { Attribute } from "../syntax/nodes.ts";
import { dtypeIn, type MlirValue, wholeOn } from "../value.ts";
import {
  contradicted,
  madeValue,
  operandAt,
  type ReadRow,
  type Reading,
  refuse,
  resultType,
  readRow,
  shiftedAxes,
} from "./reading.ts";
import { elementCount } from "../../../numerics/tensor/storage.ts";

/** Axes of both operands, in pairs. */
interface Pairs {
  readonly left: readonly number[];
  readonly right: readonly number[];
}

const noPairs: Pairs = { left: [], right: [] };

/** `batching_dims = [0] x [0], contracting_dims = [2] x [1]`, or the fields of `#stablehlo.dot<..>`. */
function pairsOf(reading: Reading, pretty: string, field: string): Pairs {
  const { op } = reading;
  const short = attributeOf(op, pretty);
  if (short?.kind === "sequence") {
    const [left = null, , right = null] = short.parts.map(numbersIn);
    if (left !== null && right !== null) return checkedPairs(reading, { left, right });
  }
  const numbersOf = attributeOf(op, "dot_dimension_numbers");
  const body = numbersOf?.kind === "named" ? numbersOf.body : null;
  if (body?.kind !== "group")
    return short === null ? noPairs : refuse(reading, `${pretty} of another form`, `${pretty} = [0] x [0]`);
  const side = (name: string): readonly number[] => numbersOfEntry(body.entries.get(`${name}_${field}`));
  return checkedPairs(reading, { left: side("lhs"), right: side("rhs") });
}

function numbersOfEntry(attribute: Attribute | undefined): readonly number[] {
  return attribute === undefined ? [] : (numbersIn(attribute) ?? []);
}

function checkedPairs(reading: Reading, pairs: Pairs): Pairs {
  const { reader, op } = reading;
  const [left, right] = [operandAt(reading), operandAt(reading, 1)];
  requireAxes(reader, op, pairs.left, left.type.shape.length);
  requireAxes(reader, op, pairs.right, right.type.shape.length);
  const fits = pairs.left.every((axis, i) => left.type.shape[axis] === right.type.shape[pairs.right[i] ?? -1]);
  if (!fits || pairs.left.length !== pairs.right.length) {
    contradicted(reading, `axes [${pairs.left.join(", ")}] and [${pairs.right.join(", ")}]`, "pairs of equal extents");
  }
  return pairs;
}

function dotGeneral(reading: Reading, axes: readonly string[]): MlirValue {
  const batch = pairsOf(reading, "batching_dims", "batching_dimensions");
  const contracted = pairsOf(reading, "contracting_dims", "contracting_dimensions");
  return contraction(reading, axes, batch, contracted);
}

/** `dot` contracts the last axis of the first operand with the first axis of the second. */
function dot(reading: Reading, axes: readonly string[]): MlirValue {
  const left = operandAt(reading).type.shape.length - 1;
  return contraction(reading, axes, noPairs, checkedPairs(reading, { left: [left], right: [0] }));
}

/** [batch, free of the left, contracted] x [batch, contracted, free of the right]. */
function contraction(reading: Reading, axes: readonly string[], batch: Pairs, contracted: Pairs): MlirValue {
  const { reader } = reading;
  const [left, right] = [operandAt(reading), operandAt(reading, 1)];
  const [freeLeft, freeRight] = [
    freeAxes(left, [...batch.left, ...contracted.left]),
    freeAxes(right, [...batch.right, ...contracted.right]),
  ];
  const { shape } = resultType(reading);
  const dtype = dtypeIn(resultType(reading));
  const extents = (value: MlirValue, own: readonly number[]): readonly number[] =>
    own.map((axis) => at(value.type.shape, axis));
  return madeValue(reading, axes, () => {
    // A wider result is computed in its dtype, of the same products.
    const wide = (value: MlirValue): TensorView => {
      const tensor = wholeOn(reader, value, axes);
      return tensor.dtype === dtype ? tensor : cast(tensor, dtype);
    };
    const ordered = (value: MlirValue, order: readonly number[]): TensorView => {
      const tensor = wide(value);
      const all = [...axes.keys(), ...shiftedAxes(order, axes)];
      return all.every((axis, i) => axis === i) ? tensor : permute(tensor, all);
    };
    const leading = (tensor: TensorView): readonly number[] => readExtents(tensor).slice(0, axes.length);
    const depth = elementCount(extents(left, contracted.left));
    let a = ordered(left, [...batch.left, ...freeLeft, ...contracted.left]);
    let b = ordered(right, [...batch.right, ...contracted.right, ...freeRight]);
    const batches = extents(left, batch.left);
    // Without batch axes the right operand is a matrix, and all free axes of the left may stay.
    const isMatrix = batches.length === 0 && axes.length === 0;
    if (contracted.left.length !== 1) a = reshape(a, [...leading(a), ...batches, ...extents(left, freeLeft), depth]);
    if (contracted.right.length !== 1 || freeRight.length !== 1) {
      b = reshape(b, [...leading(b), ...batches, depth, elementCount(extents(right, freeRight))]);
    }
    const firstFree = axes.length + batches.length;
    if (freeLeft.length === 0)
      a = broadcast(a, [
        ...readExtents(a)
          .slice(0, firstFree)
          .map(() => false),
        true,
        false,
      ]);
    else if (!isMatrix && freeLeft.length > 1) {
      // All free axes but the last are batch axes, along which the right operand repeats.
      const added = freeLeft.slice(1).map(() => true);
      b = broadcast(b, [
        ...readExtents(b)
          .slice(0, firstFree)
          .map(() => false),
        ...added,
        false,
        false,
      ]);
    }
    const product = matmul(a, b);
    if (freeLeft.length > 0 && freeRight.length === 1) return product;
    const found = readExtents(product);
    const rest = freeLeft.length === 0 ? [firstFree] : [];
    const dropped = freeRight.length === 0 ? [...rest, found.length - 1] : rest;
    if (freeRight.length < 2) return squeeze(product, dropped);
    return reshape(product, [...leading(product), ...shape]);
  });
}

function freeAxes({ type }: MlirValue, used: readonly number[]): readonly number[] {
  return type.shape.flatMap((_, axis) => (used.includes(axis) ? [] : [axis]));
}

export const contractionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.dot_general": readRow(dotGeneral),
  "stablehlo.dot": readRow(dot),
};
