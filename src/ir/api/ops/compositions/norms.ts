/** Norms over the last axis, of tensors with a weight and a bias for each index of it. */
import type { TensorView } from "../../tensor-view.ts";
import { add, mul, sub } from "../elementwise.ts";
import { rsqrt } from "../functions.ts";
import { alignRight, floatCall, inDType, keepAxes, mark, requireOfLastAxis, wide } from "./compose.ts";
import { lastAxis, meanOf } from "./statistics.ts";

/**
 * torch.nn.functional.layer_norm over the last axis: the distance to the mean, divided by the root of the variance plus
 * `eps`, then times `weight` plus `bias`, which may be null. 16-bit floats are computed in float. Throws
 * `shape-mismatch`, `dtype-mismatch` (integers and bool), `axis-out-of-range` (no axis), `foreign-tensor`.
 */
export function layerNorm(
  tensor: TensorView,
  weight: TensorView | null = null,
  bias: TensorView | null = null,
  eps = 1e-5,
): TensorView {
  const { axis, x, inputs } = normCall("layerNorm", tensor, { weight, bias }, eps);
  const average = meanOf(x, [axis]);
  const distance = sub(x, keepAxes(average, [axis], x));
  const root = rsqrt(add(meanOf(mul(distance, distance), [axis]), eps));
  const normal = mul(distance, keepAxes(root, [axis], x));
  const y = inDType(affine(normal, weight, bias), tensor.dtype);
  mark("layerNorm", { inputs, outputs: [y], kept: [average, root], axes: [axis] });
  return y;
}

/**
 * torch.nn.functional.rms_norm over the last axis: the tensor divided by the root of the mean of its squares plus
 * `eps`, then times `weight`, which may be null. Dtypes and errors as in `layerNorm`.
 */
export function rmsNorm(tensor: TensorView, weight: TensorView | null = null, eps = 1e-6): TensorView {
  const { axis, x, inputs } = normCall("rmsNorm", tensor, { weight }, eps);
  const root = rsqrt(add(meanOf(mul(x, x), [axis]), eps));
  const y = inDType(affine(mul(x, keepAxes(root, [axis], x)), weight, null), tensor.dtype);
  mark("rmsNorm", { inputs, outputs: [y], kept: [root], axes: [axis] });
  return y;
}

interface NormCall {
  readonly axis: number;
  /** The tensor in the dtype of the computation. */
  readonly x: TensorView;
  /** The tensor, and the weight and bias that are there. */
  readonly inputs: readonly TensorView[];
}

function normCall(
  name: string,
  tensor: TensorView,
  factors: Readonly<Record<string, TensorView | null>>,
  eps: number,
): NormCall {
  const given = Object.entries(factors).flatMap(([what, each]) => (each === null ? [] : [{ what, each }]));
  const inputs = [tensor, ...given.map(({ each }) => each)];
  const place = floatCall(name, inputs, eps);
  const axis = lastAxis(tensor, place);
  for (const { what, each } of given) requireOfLastAxis(each, tensor, what, place);
  return { axis, x: wide(tensor), inputs };
}

function affine(x: TensorView, weight: TensorView | null, bias: TensorView | null): TensorView {
  const scaled = weight === null ? x : mul(x, alignRight(weight, x));
  return bias === null ? scaled : add(scaled, alignRight(bias, x));
}
