/** Convolutions and contractions. */
import { cast } from "../../../ir/api/ops.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, number, numbersIn, requireAxes } from "../read-attributes.ts";
import { type AxisPairs, contract } from "../../contract.ts";
import { convolve, type Windows } from "../../convolution.ts";
import { permutedTo } from "../../views.ts";
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

/** A list of the window: `stride = [2, 2]` or `window_strides`; two numbers for each axis of the padding. */
function windowList(
  reading: Reading,
  pretty: string,
  generic: string,
  length: number,
  plain: number,
): readonly number[] {
  const window = attributeOf(reading.op, "window");
  const attribute: Attribute | null | undefined =
    window?.kind === "group" ? window.entries.get(pretty) : attributeOf(reading.op, generic);
  const found = attribute === null || attribute === undefined ? [] : numbersIn(attribute);
  if (found?.length === length) return found;
  // `dense<1>` and an empty list stand for all.
  const [all = plain] = found ?? [];
  return (found?.length ?? 2) < 2
    ? Array.from({ length }, () => all)
    : refuse(reading, `a ${generic} of another form`, `${length} numbers`);
}

function convolution(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const [value, kernel] = [operandAt(reading), operandAt(reading, 1)];
  const [own = [], weights = [], result = []] = labelsOf(reading);
  const spatial = own.filter((label) => /^\d+$/u.test(label));
  const list = (pretty: string, generic: string, plain: number, each = 1): readonly number[] =>
    windowList(reading, pretty, generic, each * spatial.length, plain);
  const isForward =
    list("lhs_dilate", "lhs_dilation", 1).every((step) => step === 1) &&
    list("reverse", "window_reversal", 0).every((flag) => flag === 0) &&
    number(reader, op, ["batch_group_count"], 1) === 1;
  if (!isForward) {
    return refuse(reading, "a dilated operand, a reversed window or groups of a batch", "a convolution, forward");
  }
  const widths = list("pad", "padding", 0, 2);
  const groups = number(reader, op, ["feature_group_count"], 1);
  const windows: Windows = {
    stride: list("stride", "window_strides", 1),
    padding: spatial.map((_, i) => [at(widths, 2 * i), at(widths, 2 * i + 1)]),
    dilation: list("rhs_dilate", "rhs_dilation", 1),
    groups,
  };
  const inputs = kernel.type.shape[weights.indexOf("i")] ?? 0;
  const features = at(value.type.shape, own.indexOf("f"));
  if (features !== inputs * groups) {
    contradicted(reading, `${features} features`, "as many as the kernel has, in all groups");
  }
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
    return inOrder(cutTo(resultType(reading), convolve(images, kernels, null, windows)), places, result);
  });
}

export const convolutionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.convolution": readRow(convolution, "forward"),
};

/* Contractions as `matmul`: any batch, contracted and free axes, in any order. */

const noPairs: AxisPairs = { left: [], right: [] };

/** `batching_dims = [0] x [0], contracting_dims = [2] x [1]`, or the fields of `#stablehlo.dot<..>`. */
function pairsOf(reading: Reading, pretty: string, field: string): AxisPairs {
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

function checkedPairs(reading: Reading, pairs: AxisPairs): AxisPairs {
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

function contraction(reading: Reading, batch: AxisPairs, contracted: AxisPairs): MlirValue {
  const [left, right] = [operandAt(reading), operandAt(reading, 1)];
  const dtype = dtypeIn(resultType(reading));
  return madeValue(reading, () => {
    // A wider result is computed in its dtype, of the same products.
    const wide = (value: MlirValue): TensorView => {
      const tensor = ownWhole(reading, value);
      return tensor.dtype === dtype ? tensor : cast(tensor, dtype);
    };
    return cutTo(resultType(reading), contract(wide(left), wide(right), batch, contracted));
  });
}

export const contractionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.dot_general": readRow(dotGeneral),
  "stablehlo.dot": readRow(dot),
};
