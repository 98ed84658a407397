/** Compositions that differ from their ops in nothing but their gradients, which are PyTorch's. Models import them. */
import type { TensorView } from "../../tensor-view.ts";
import { embedding } from "../indexing.ts";
import { amax, amin } from "../reductions.ts";
import { set } from "../views.ts";
import { neg } from "../functions.ts";
import { mark } from "./compose.ts";
import { argmax } from "./statistics.ts";

/** The same elements, through which no gradient passes. */
export function detached(tensor: TensorView): TensorView {
  const y = set(tensor);
  mark(y, { name: "detach", operands: { x: tensor.id }, outputs: [y.id], kept: [], axes: [] });
  return y;
}

/** An embedding whose row `padding` gets no gradient; no row is a negative one. */
export function paddedEmbedding(table: TensorView, index: TensorView, padding: number): TensorView {
  const y = embedding(table, index);
  const operands = { table: table.id, index: index.id };
  if (padding >= 0) mark(y, { name: "paddedRows", operands, outputs: [y.id], kept: [], axes: [0], padding });
  return y;
}

/** The largest or smallest element along an axis, and its index. The first of equal ones gets all of the gradient. */
export function extreme(
  tensor: TensorView,
  axis: number,
  which: "max" | "min",
): readonly [values: TensorView, index: TensorView] {
  const y = which === "max" ? amax(tensor, [axis]) : amin(tensor, [axis]);
  const index = argmax(which === "max" ? tensor : neg(tensor), axis);
  mark(y, { name: "extreme", operands: { x: tensor.id }, outputs: [y.id], kept: [index.id], axes: [axis] });
  return [y, index];
}
