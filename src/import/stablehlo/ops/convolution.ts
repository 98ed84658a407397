/** Convolutions whose windows do not overlap, such as a patch embedding: a contraction over each window. */
import { matmul, permute, reshape } from "../../../ir/api/ops.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, number, numbersIn } from "../read-attributes.ts";
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

function convolution(reading: Reading, axes: readonly string[]): MlirValue {
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
  const [batch, features] = ["b", "f"].map((label) => at(value.type.shape, own.indexOf(label)));
  const outputs = at(kernel.type.shape, weights.indexOf("o"));
  if (features !== kernel.type.shape[weights.indexOf("i")])
    contradicted(reading, `${features} features`, "as many as the kernel has");
  return madeValue(reading, axes, () => {
    const dtype = dtypeIn(resultType(reading));
    const [x, w] = [wholeOn(reader, value, axes), wholeOn(reader, kernel, axes)];
    if (x.dtype !== dtype || w.dtype !== dtype) refuse(reading, `${x.dtype} and ${w.dtype} to ${dtype}`, "one dtype");
    const leading = (extents: readonly number[]): readonly number[] => extents.slice(0, axes.length);
    const ordered = ["b", ...spatial, "f"].map((label) => own.indexOf(label));
    const moved = permute(x, [...axes.keys(), ...shiftedAxes(ordered, axes)]);
    const apart = counts.flatMap((count, i) => [count, at(sizes, i)]);
    const split = reshape(moved, [...leading(readExtents(moved)), batch ?? 1, ...apart, features ?? 1]);
    const places = spatial.map((_, i) => 1 + 2 * i);
    const order = [0, ...places, ...places.map((place) => place + 1), 1 + 2 * spatial.length];
    const windows = permute(split, [...axes.keys(), ...shiftedAxes(order, axes)]);
    const depth = elementCount(sizes) * (features ?? 1);
    const rows = reshape(windows, [...leading(readExtents(windows)), (batch ?? 1) * elementCount(counts), depth]);
    const columns = permute(w, [
      ...axes.keys(),
      ...shiftedAxes(
        [...spatial, "i", "o"].map((label) => weights.indexOf(label)),
        axes,
      ),
    ]);
    const product = matmul(rows, reshape(columns, [...leading(readExtents(columns)), depth, outputs]));
    const whole = reshape(product, [...leading(readExtents(product)), batch ?? 1, ...counts, outputs]);
    const labels = ["b", ...spatial, "f"];
    return permute(whole, [
      ...axes.keys(),
      ...shiftedAxes(
        result.map((label) => labels.indexOf(label)),
        axes,
      ),
    ]);
  });
}

export const convolutionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.convolution": readRow(convolution, "as a patch embedding: windows side by side"),
};
