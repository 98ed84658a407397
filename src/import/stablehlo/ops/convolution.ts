/** Convolutions whose windows do not overlap, such as a patch embedding: a contraction over each window. */
import { matmul, reshape, cast, squeeze } from "../../../ir/api/ops.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, number, numbersIn, requireAxes } from "../read-attributes.ts";
import { patchesTimes, permutedTo, withAxes } from "../../views.ts";
import type { Attribute } from "../syntax/nodes.ts";
import { cutTo, dtypeIn, type MlirValue, ownWhole } from "../value.ts";
import {
  contradicted,
  madeValue,
  operandAt,
  type ReadRow,
  type Reading,
  refuse,
  resultType,
  readRow,
} from "./reading.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";

/** `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: what each axis of the operand, the kernel and the result is. */
function labelsOf(reading: Reading): readonly (readonly string[])[] {
  const attribute = attributeOf(reading.op, "dim_numbers", "dimension_numbers");
  const body = attribute?.kind === "named" && attribute.body.kind === "group" ? attribute.body.items[0] : attribute;
  const groups = body?.kind === "sequence" ? body.parts.filter((part) => part.kind === "group") : [];
  const labels = groups.map(({ items }) =>
    items.map((item) => (item.kind === "word" || item.kind === "number" ? item.text : "")),
  );
  const shapes = [operandAt(reading).type, operandAt(reading, 1).type, resultType(reading)].map(
    ({ shape }) => shape.length,
  );
  if (labels.length === 3 && labels.every((each, i) => new Set(each).size === shapes[i])) return labels;
  return refuse(reading, "dimension numbers of another form", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
}

/** Whether a list of the window has this number everywhere, or is left out. */
function isAll(reading: Reading, pretty: string, generic: string, value: number): boolean {
  const window = attributeOf(reading.op, "window");
  const attribute: Attribute | null | undefined =
    window?.kind === "group" ? window.entries.get(pretty) : attributeOf(reading.op, generic);
  const found = attribute === null || attribute === undefined ? [] : numbersIn(attribute);
  return found?.every((each) => each === value) ?? false;
}

function convolution(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const [value, kernel] = [operandAt(reading), operandAt(reading, 1)];
  const [own = [], weights = [], result = []] = labelsOf(reading);
  const spatial = own.filter((label) => /^\d+$/u.test(label));
  const window = attributeOf(op, "window");
  const stride = window?.kind === "group" ? window.entries.get("stride") : attributeOf(op, "window_strides");
  const steps = stride === null || stride === undefined ? spatial.map(() => 1) : (numbersIn(stride) ?? []);
  const sizes = spatial.map((label) => at(kernel.type.shape, weights.indexOf(label)));
  const counts = spatial.map((label, i) => at(value.type.shape, own.indexOf(label)) / at(sizes, i));
  const isPlain =
    isAll(reading, "pad", "padding", 0) &&
    isAll(reading, "lhs_dilate", "lhs_dilation", 1) &&
    isAll(reading, "rhs_dilate", "rhs_dilation", 1) &&
    isAll(reading, "reverse", "window_reversal", 0) &&
    number(reader, op, ["batch_group_count"], 1) === 1 &&
    number(reader, op, ["feature_group_count"], 1) === 1;
  if (!isPlain || steps.some((step, i) => step !== sizes[i]) || !counts.every(Number.isInteger)) {
    return refuse(
      reading,
      "windows that overlap, or are padded or dilated",
      "windows side by side, as of a patch embedding",
    );
  }
  const inputs = kernel.type.shape[weights.indexOf("i")];
  const features = at(value.type.shape, own.indexOf("f"));
  if (features !== inputs) contradicted(reading, `${features} features`, "as many as the kernel has");
  return madeValue(reading, () => {
    const dtype = dtypeIn(resultType(reading));
    const [x, w] = [ownWhole(reading, value), ownWhole(reading, kernel)];
    if (x.dtype !== dtype || w.dtype !== dtype) refuse(reading, `${x.dtype} and ${w.dtype} to ${dtype}`, "one dtype");
    const inOrder = (tensor: TensorView, labels: readonly string[], wanted: readonly string[]): TensorView => {
      const order = wanted.map((label) => labels.indexOf(label));
      return permutedTo(tensor, order);
    };
    const places = ["b", "f", ...spatial];
    const [images, kernels] = [inOrder(x, own, places), inOrder(w, weights, ["o", "i", ...spatial])];
    return inOrder(cutTo(resultType(reading), patchesTimes(images, kernels, null, sizes)), places, result);
  });
}

export const convolutionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.convolution": readRow(convolution, "as a patch embedding: windows side by side"),
};

/* Contractions as `matmul`: any batch, contracted and free axes, in any order. */

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

function dotGeneral(reading: Reading): MlirValue {
  const batch = pairsOf(reading, "batching_dims", "batching_dimensions");
  const contracted = pairsOf(reading, "contracting_dims", "contracting_dimensions");
  return contraction(reading, batch, contracted);
}

/** `dot` contracts the last axis of the first operand with the first axis of the second. */
function dot(reading: Reading): MlirValue {
  const left = operandAt(reading).type.shape.length - 1;
  return contraction(reading, noPairs, checkedPairs(reading, { left: [left], right: [0] }));
}

/** [batch, free of the left, contracted] x [batch, contracted, free of the right]. */
function contraction(reading: Reading, batch: Pairs, contracted: Pairs): MlirValue {
  const [left, right] = [operandAt(reading), operandAt(reading, 1)];
  const [freeLeft, freeRight] = [
    freeAxes(left, [...batch.left, ...contracted.left]),
    freeAxes(right, [...batch.right, ...contracted.right]),
  ];
  const { shape } = resultType(reading);
  const dtype = dtypeIn(resultType(reading));
  const extents = (value: MlirValue, own: readonly number[]): readonly number[] =>
    own.map((axis) => at(value.type.shape, axis));
  return madeValue(reading, () => {
    // A wider result is computed in its dtype, of the same products.
    const wide = (value: MlirValue): TensorView => {
      const tensor = ownWhole(reading, value);
      return tensor.dtype === dtype ? tensor : cast(tensor, dtype);
    };
    const depth = elementCount(extents(left, contracted.left));
    let a = permutedTo(wide(left), [...batch.left, ...freeLeft, ...contracted.left]);
    let b = permutedTo(wide(right), [...batch.right, ...contracted.right, ...freeRight]);
    const batches = extents(left, batch.left);
    if (contracted.left.length !== 1) a = reshape(a, [...batches, ...extents(left, freeLeft), depth]);
    if (contracted.right.length !== 1 || freeRight.length !== 1) {
      b = reshape(b, [...batches, depth, elementCount(extents(right, freeRight))]);
    }
    const firstFree = batches.length;
    if (freeLeft.length === 0) a = withAxes(a, firstFree, 1);
    // All free axes but the last are batch axes, along which the right operand repeats: a matrix does so as it is.
    else if (firstFree > 0) b = withAxes(b, firstFree, freeLeft.length - 1);
    const product = cutTo(resultType(reading), matmul(a, b));
    if (freeLeft.length > 0 && freeRight.length === 1) return product;
    const rest = freeLeft.length === 0 ? [firstFree] : [];
    const dropped = freeRight.length === 0 ? [...rest, product.rank - 1] : rest;
    if (freeRight.length < 2) return squeeze(product, dropped);
    return reshape(product, shape);
  });
}

function freeAxes({ type }: MlirValue, used: readonly number[]): readonly number[] {
  return type.shape.flatMap((_, axis) => (used.includes(axis) ? [] : [axis]));
}

export const contractionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.dot_general": readRow(dotGeneral),
  "stablehlo.dot": readRow(dot),
};
