/** Convolutions and contractions. */
import { cast } from "../../../ir/api/ops.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, number, numbersIn, requireAxes } from "../read-attributes.ts";
import { type AxisPairs, contract, convolve, windowCounts, type Windows } from "../../contractions.ts";
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
import { accumulatorOf, isPacked } from "../../../numerics/dtype.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import { spacedBy } from "./shape.ts";
import { convolveWindows } from "./windows.ts";

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

function isReversed({ op }: Reading): boolean {
  const window = attributeOf(op, "window");
  const found = window?.kind === "group" ? window.entries.get("reverse") : attributeOf(op, "window_reversal");
  return found !== null && found !== undefined && wordsOf(found).includes("true");
}

function wordsOf(attribute: Attribute): readonly string[] {
  switch (attribute.kind) {
    case "word":
      return [attribute.text];
    case "named":
      return wordsOf(attribute.body);
    case "group":
      return attribute.items.flatMap(wordsOf);
    case "sequence":
      return attribute.parts.flatMap(wordsOf);
    default:
      return [];
  }
}

/** Kernels of more elements, as of gradients by the kernel, are not read element by element. */
const mostTaps = 25;

function convolution(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const [value, kernel] = [operandAt(reading), operandAt(reading, 1)];
  const type = resultType(reading);
  const [own = [], weights = [], result = []] = labelsOf(reading);
  const spatial = own.filter((label) => /^\d+$/u.test(label));
  const list = (pretty: string, generic: string, plain: number, each = 1): readonly number[] =>
    windowList(reading, pretty, generic, each * spatial.length, plain);
  if (isReversed(reading)) refuse(reading, "reversed windows", "a kernel that is reversed before");
  const spacings = list("lhs_dilate", "lhs_dilation", 1);
  const widths = list("pad", "padding", 0, 2);
  const groups = number(reader, op, ["feature_group_count"], 1);
  const batchGroups = number(reader, op, ["batch_group_count"], 1);
  const windows: Windows = {
    stride: list("stride", "window_strides", 1),
    padding: spatial.map((_, i) => [at(widths, 2 * i), at(widths, 2 * i + 1)]),
    dilation: list("rhs_dilate", "rhs_dilation", 1),
    groups,
  };
  const extent = ({ shape }: MlirValue["type"], labels: readonly string[], label: string): number =>
    shape[labels.indexOf(label)] ?? 0;
  const extents = (of: MlirValue["type"], labels: readonly string[]): readonly number[] =>
    spatial.map((label) => extent(of, labels, label));
  const [places, sizes] = [extents(type, result), extents(kernel.type, weights)];
  const spread = extents(value.type, own).map((size, i) => Math.max(0, (size - 1) * at(spacings, i) + 1));
  const counts = windowCounts(spread, sizes, windows);
  const [features, out] = [extent(value.type, own, "f"), extent(kernel.type, weights, "o")];
  const isGrouped =
    extent(kernel.type, weights, "i") * groups === features &&
    extent(type, result, "b") * batchGroups === extent(value.type, own, "b") &&
    out % (groups * batchGroups) === 0 &&
    extent(type, result, "f") === out;
  if (!isGrouped || counts.some((count, i) => Math.max(0, count) !== places[i])) {
    contradicted(reading, "extents of other windows or groups", "features and windows as the operands have");
  }
  if ([...places, ...sizes].includes(0)) refuse(reading, "empty windows", "windows with elements");
  return madeValue(reading, () => {
    const inOrder = (operand: MlirValue, labels: readonly string[], wanted: readonly string[]): TensorView => {
      const tensor = ownWhole(reading, operand);
      const typed = tensor.dtype === dtypeIn(type) ? tensor : cast(tensor, dtypeIn(type));
      return permutedTo(
        typed,
        wanted.map((label) => labels.indexOf(label)),
      );
    };
    const labels = ["b", "f", ...spatial];
    const images = spacedBy(inOrder(value, own, labels), [0, 0, ...spacings.map((each) => each - 1)], 0);
    const filters = inOrder(kernel, weights, ["o", "i", ...spatial]);
    const isSmall = batchGroups === 1 && elementCount(sizes) <= mostTaps;
    const made = isSmall
      ? convolve(images, filters, null, windows)
      : convolveWindows(reader, images, filters, { ...windows, places, batchGroups });
    return permutedTo(
      cutTo(type, made),
      result.map((label) => labels.indexOf(label)),
    );
  });
}

export const convolutionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.convolution": readRow(convolution, "as a contraction over windows"),
};

/* Contractions: which axes the text pairs. */

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
    const [a, b] = [ownWhole(reading, left), ownWhole(reading, right)];
    // A wider result is computed in its dtype, of the same products: by a matmul itself if it sums in it.
    const isSum = a.dtype === b.dtype && isPacked(a.dtype) && dtype === accumulatorOf(a.dtype);
    const wide = (tensor: TensorView): TensorView => (tensor.dtype === dtype || isSum ? tensor : cast(tensor, dtype));
    return cutTo(resultType(reading), contract(wide(a), wide(b), batch, contracted, dtype));
  });
}

export const contractionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.dot_general": readRow(dotGeneral),
  "stablehlo.dot": readRow(dot),
};
