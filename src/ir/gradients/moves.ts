/** The rules of ops that move elements: zeros around a cotangent, its parts, or its sums at indices. */
import { at } from "../../support/invariant.ts";
import { broadcast, cat, expand, pad, reshape, scatterAdd, slice, unsqueeze } from "../api/ops.ts";
import type { TensorView } from "../api/tensor-view.ts";
import type { SliceOp } from "../ops/op.ts";
import { constantValue, foldAdd, foldMul, foldProduct, foldSub, isConstant, sameScalar } from "../scalar/fold.ts";
import { constant, type Scalar } from "../scalar/scalar.ts";
import { filled } from "./shapes.ts";

type Range = SliceOp["ranges"][number];

/** `g` at the indices of `ranges`, zeros elsewhere, in the shape of `x`. */
export function sliceCotangent(g: TensorView, x: TensorView, ranges: readonly Range[]): TensorView {
  return ranges.reduce((result, range, axis) => spread(result, x, range, axis), g);
}

function spread(g: TensorView, x: TensorView, { start, stop, step = 1 }: Range, axis: number): TensorView {
  const extent = at(x.extents, axis);
  const span = step === 1 ? g : withGaps(g, axis, step, foldSub(stop, start));
  const [before, after] = [start, sameScalar(extent, stop) ? constant(0) : foldSub(extent, stop)];
  if (isConstant(before, 0) && isConstant(after, 0)) return span;
  const widths = [constantValue(before), constantValue(after)] as const;
  if (widths[0] !== null && widths[1] !== null) {
    const known: readonly [number, number] = [widths[0], widths[1]];
    return pad(
      span,
      span.extents.map((_, i) => (i === axis ? known : [0, 0])),
    );
  }
  const zeros = (size: Scalar): readonly TensorView[] =>
    isConstant(size, 0) ? [] : [filled(x, span.extents.with(axis, size), 0)];
  return cat([...zeros(before), span, ...zeros(after)], axis);
}

/** `step - 1` zeros after each index, up to `length` indices. */
function withGaps(g: TensorView, axis: number, step: number, length: Scalar): TensorView {
  const column = unsqueeze(g, axis + 1);
  const padded = pad(
    column,
    column.extents.map((_, i) => (i === axis + 1 ? [0, step - 1] : [0, 0])),
  );
  const long = reshape(padded, g.extents.with(axis, foldMul(at(g.extents, axis), constant(step))));
  return slice(
    long,
    long.extents.map(() => 0),
    long.extents.with(axis, length),
  );
}

/** The sums of `g` at the indices along `axis` of `x` that an indexSelect has read. */
export function indexCotangent(g: TensorView, x: TensorView, axis: number, index: TensorView): TensorView {
  const { rank } = index;
  const flat = rank === 1 ? index : reshape(index, [foldProduct(index.extents)]);
  const rows = rank === 1 ? g : reshape(g, g.extents.toSpliced(axis, rank, at(flat.extents, 0)));
  const flags = rows.extents.map((_, i) => i !== axis);
  return scatterAdd(filled(x, x.extents, 0), axis, expand(broadcast(flat, flags), rows.extents), rows);
}

/** The sums of `g` at the indices along `axis` of `x` that a gather has read. */
export function gatherCotangent(g: TensorView, x: TensorView, axis: number, index: TensorView): TensorView {
  return scatterAdd(filled(x, x.extents, 0), axis, index, g);
}

/** The indices of one operand of a cat. */
export function partOf(g: TensorView, operands: readonly TensorView[], axis: number, operand: number): TensorView {
  const extents = operands.map((each) => at(each.extents, axis));
  const start = extents.slice(0, operand).reduce(foldAdd, constant(0));
  const stop = foldAdd(start, at(extents, operand));
  return slice(
    g,
    g.extents.map((_, i) => (i === axis ? start : 0)),
    g.extents.with(axis, stop),
  );
}
