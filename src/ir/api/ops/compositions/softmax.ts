/** Softmax, its logarithm, and the loss that uses it. */
import { at } from "../../../../support/invariant.ts";
import { dtypes } from "../../../../numerics/dtype.ts";
import { type Call, reject, resolveAxes, shapeText } from "../../../ops/call.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { callOf } from "../apply.ts";
import type { TensorView } from "../../tensor-view.ts";
import { isfinite, where } from "../choices.ts";
import { add, div, sub } from "../elementwise.ts";
import { exp, log } from "../functions.ts";
import { gather } from "../indexing.ts";
import { amax, sum } from "../reductions.ts";
import { unsqueeze } from "../shape.ts";
import { squeeze } from "../views.ts";
import { floatCall, inDType, keepAxes, mark, wide } from "./compose.ts";
import { lastAxis, meanOf } from "./statistics.ts";

/**
 * torch.softmax: NaN where all of a row is -Infinity. 16-bit floats are computed in float. Throws `axis-out-of-range`,
 * `dtype-mismatch` (integers and bool).
 */
export function softmax(tensor: TensorView, axis: number): TensorView {
  const place = floatCall("softmax", [tensor], axis);
  const axes = [at(resolveAxes([axis], tensor.rank, place), 0)];
  const x = wide(tensor);
  const powers = exp(sub(x, keepAxes(amax(x, axes), axes, x)));
  const y = inDType(div(powers, keepAxes(sum(powers, axes), axes, x)), tensor.dtype);
  mark(y, { name: "softmax", operands: { x: tensor.id }, outputs: [y.id], kept: [], axes });
  return y;
}

/** The logarithm of `softmax`, accurate for small results. Dtypes and errors as in `softmax`. */
export function logSoftmax(tensor: TensorView, axis: number): TensorView {
  const place = floatCall("logSoftmax", [tensor], axis);
  const axes = [at(resolveAxes([axis], tensor.rank, place), 0)];
  const x = wide(tensor);
  const shifted = sub(x, keepAxes(amax(x, axes), axes, x));
  const exact = sub(shifted, keepAxes(log(sum(exp(shifted), axes)), axes, x));
  const y = inDType(exact, tensor.dtype);
  mark(y, { name: "logSoftmax", operands: { x: tensor.id }, outputs: [y.id], kept: [exact.id], axes });
  return y;
}

/**
 * torch.logsumexp, which overflows only if the result does. 16-bit floats are computed in float. Shapes as in `sum`.
 * Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`, `dtype-mismatch` (integers and bool).
 */
export function logsumexp(tensor: TensorView, axes: readonly number[]): TensorView {
  const place = floatCall("logsumexp", [tensor], axes);
  const resolved = resolveAxes(axes, tensor.rank, place);
  const exact = logSum(wide(tensor), resolved);
  const y = inDType(exact, tensor.dtype);
  mark(y, { name: "logsumexp", operands: { x: tensor.id }, outputs: [y.id], kept: [exact.id], axes: resolved });
  return y;
}

function logSum(x: TensorView, axes: readonly number[]): TensorView {
  const most = amax(x, axes);
  // An infinite shift would make NaN of an infinite result.
  const shift = where(isfinite(most), most, 0);
  return add(log(sum(exp(sub(x, keepAxes(shift, axes, x))), axes)), shift);
}

/**
 * torch.nn.functional.cross_entropy: the mean over rows, whose classes `target` names. 16-bit floats are computed in
 * float. Throws `shape-mismatch`, `dtype-mismatch` (logits that are no floats, or indices that are no integers),
 * `axis-out-of-range` (no axis), `foreign-tensor`.
 */
export function crossEntropy(logits: TensorView, target: TensorView): TensorView {
  floatCall("crossEntropy", [logits]);
  const place = callOf("crossEntropy", [logits, target]);
  const axis = lastAxis(logits, place);
  requireTargets(logits, target, place);
  const z = wide(logits);
  const sums = logSum(z, [axis]);
  const right = squeeze(gather(z, axis, unsqueeze(target, axis)), [axis]);
  const losses = sub(sums, right);
  const all = [...losses.extents.keys()];
  const y = inDType(all.length === 0 ? losses : meanOf(losses, all), logits.dtype);
  const operands = { logits: logits.id, target: target.id };
  mark(y, { name: "crossEntropy", operands, outputs: [y.id], kept: [sums.id], axes: [axis] });
  return y;
}

function requireTargets(logits: TensorView, target: TensorView, place: Call): void {
  if (dtypes[target.dtype].family !== "integer") {
    reject(place, "dtype-mismatch", "the targets are not integers", {
      found: target.dtype,
      expected: "int or int64: the index of a class for each row",
      help: 'convert them with cast(target, "int64")',
    });
  }
  const rows = logits.extents.slice(0, -1);
  if (rows.length === target.rank && rows.every((extent, i) => !extentsDiffer(extent, at(target.extents, i)))) return;
  reject(place, "shape-mismatch", "the targets are not one per row of the logits", {
    found: `${shapeText(target.data())} for ${shapeText(logits.data())}`,
    expected: "the shape of the logits without the last axis",
    help: "give one index for each row",
  });
}
