/**
 * The axes of matmul and linear, as torch.matmul and torch.nn.functional.linear have them, with the contracted axis K as
 * the trailing reduction axis of the output's logical domain.
 */
import { at } from "../../support/invariant.ts";
import { type Call, reject, shapeText } from "./call.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../domain.ts";
import { joinAxes, rejectJoin } from "./infer-pointwise.ts";
import { extentsDiffer } from "../scalar/fold.ts";

/** a [.., M, K] or [K], b [.., K, N] or [K] -> [.., M, N, rK] without M or N where the operand has none. */
export function matmulAxes(a: Tensor, b: Tensor, place: Call): readonly AxisShape[] {
  const left = withoutReductions(a.domain.logical);
  const right = withoutReductions(b.domain.logical);
  requireAxes(a, left, place);
  requireAxes(b, right, place);
  const contracted = contract(a, at(left, left.length - 1), b, at(right, Math.max(right.length - 2, 0)), place);
  const leftBatch = left.slice(0, -2);
  const rightBatch = right.slice(0, -2);
  const count = Math.max(leftBatch.length, rightBatch.length);
  const batch = Array.from({ length: count }, (_, i): AxisShape => {
    const x = leftBatch[i - count + leftBatch.length];
    const y = rightBatch[i - count + rightBatch.length];
    if (x === undefined) return at(right, i);
    if (y === undefined) return x;
    return joinAxes(x, y) ?? rejectJoin(a, b, i, place);
  });
  const rows = left.length > 1 ? [at(left, left.length - 2)] : [];
  const columns = right.length > 1 ? [at(right, right.length - 1)] : [];
  return [...batch, ...rows, ...columns, contracted];
}

/** x [.., K], weight [N, K] or [K], bias [N] or [] -> [.., N, rK], without N where the weight has none. */
export function linearAxes(x: Tensor, weight: Tensor, bias: Tensor | null, place: Call): readonly AxisShape[] {
  const rows = withoutReductions(x.domain.logical);
  const columns = withoutReductions(weight.domain.logical);
  requireAxes(x, rows, place);
  requireAxes(weight, columns, place);
  if (columns.length > 2) {
    reject(place, {
      code: "shape-mismatch",
      message: "the weight of linear has too many axes",
      found: shapeText(weight),
      expected: "[N, K], or [K] for a single output feature",
      help: "use matmul() for batched weights",
    });
  }
  const contracted = contract(x, at(rows, rows.length - 1), weight, at(columns, columns.length - 1), place);
  const features = columns.slice(0, -1);
  if (bias !== null) requireBias(bias, weight, features, place);
  return [...rows.slice(0, -1), ...features, contracted];
}

function requireAxes(tensor: Tensor, axes: readonly IterDomain[], place: Call): void {
  if (axes.length > 0) return;
  reject(place, {
    code: "shape-mismatch",
    message: "an operand of a contraction is a scalar",
    found: shapeText(tensor),
    expected: "at least one axis",
    help: "give the operand at least one axis; mul() multiplies tensors of equal shape",
  });
}

/** K is not broadcast: an extent of 1 joins only another 1. */
function contract(a: Tensor, left: IterDomain, b: Tensor, right: IterDomain, place: Call): AxisShape {
  if (extentsDiffer(left.extent, right.extent)) {
    reject(place, {
      code: "shape-mismatch",
      message: "the contracted axes have different extents",
      found: `${shapeText(a)} and ${shapeText(b)}`,
      expected: "the last axis of the first operand as long as the contracted axis of the second",
      help: "matmul contracts [.., M, K] with [.., K, N]; linear contracts [.., K] with [N, K]",
    });
  }
  return { extent: left.extent, iterType: "reduction" };
}

function requireBias(bias: Tensor, weight: Tensor, features: readonly IterDomain[], place: Call): void {
  const axes = withoutReductions(bias.domain.logical);
  const fits =
    axes.length === features.length && axes.every((axis, i) => !extentsDiffer(axis.extent, at(features, i).extent));
  if (fits) return;
  reject(place, {
    code: "shape-mismatch",
    message: "the bias does not fit the weight",
    found: `${shapeText(bias)} for the weight ${shapeText(weight)}`,
    expected: "one axis [N], as long as the weight's first",
    help: "give the bias one element per output feature",
  });
}
