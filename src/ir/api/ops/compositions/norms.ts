/** Norms over the last axis, of tensors with a weight and a bias for each index of it. */
import { mapValues } from "../../../../support/invariant.ts";
import type { OperandsOf } from "../../../fusion-data.ts";
import type { TensorView } from "../../tensor-view.ts";
import { add, mul, sub } from "../elementwise.ts";
import { rsqrt } from "../functions.ts";
import { alignRight, floatCall, inDType, keepAxes, mark, requireOfLastAxis, wide } from "./compose.ts";
import { lastAxis, meanOf } from "./statistics.ts";

/**
 * torch.nn.functional.layer_norm over the last axis; `weight` and `bias` may be null. 16-bit floats are computed in
 * float. Throws `shape-mismatch`, `dtype-mismatch` (integers and bool), `axis-out-of-range` (no axis),
 * `foreign-tensor`.
 */
export function layerNorm(
  tensor: TensorView,
  weight: TensorView | null = null,
  bias: TensorView | null = null,
  eps = 1e-5,
): TensorView {
  const operands = {
    x: tensor,
    ...(weight === null ? {} : { weight }),
    ...(bias === null ? {} : { bias }),
  };
  const { axis, x } = normCall("layerNorm", operands, eps);
  const average = meanOf(x, [axis]);
  const distance = sub(x, keepAxes(average, [axis], x));
  const root = rsqrt(add(meanOf(mul(distance, distance), [axis]), eps));
  const normal = mul(distance, keepAxes(root, [axis], x));
  const y = inDType(affine(normal, weight, bias), tensor.dtype);
  const kept = [average.id, root.id];
  mark(y, { name: "layerNorm", operands: mapValues(operands, idOf), outputs: [y.id], kept, axes: [axis] });
  return y;
}

/** torch.nn.functional.rms_norm over the last axis; `weight` may be null. Dtypes and errors as in `layerNorm`. */
export function rmsNorm(tensor: TensorView, weight: TensorView | null = null, eps = 1e-6): TensorView {
  const operands = { x: tensor, ...(weight === null ? {} : { weight }) };
  const { axis, x } = normCall("rmsNorm", operands, eps);
  const root = rsqrt(add(meanOf(mul(x, x), [axis]), eps));
  const y = inDType(affine(mul(x, keepAxes(root, [axis], x)), weight, null), tensor.dtype);
  const kept = [root.id];
  mark(y, { name: "rmsNorm", operands: mapValues(operands, idOf), outputs: [y.id], kept, axes: [axis] });
  return y;
}

function idOf({ id }: TensorView): TensorView["id"] {
  return id;
}

/** The axis, and x in the dtype of the computation. */
function normCall(
  name: string,
  { x, ...factors }: OperandsOf<"layerNorm", TensorView>,
  eps: number,
): { readonly axis: number; readonly x: TensorView } {
  const given = Object.entries(factors);
  const place = floatCall(name, [x, ...given.map(([, each]) => each)], eps);
  const axis = lastAxis(x, place);
  for (const [what, each] of given) requireOfLastAxis(each, x, what, place);
  return { axis, x: wide(x) };
}

function affine(x: TensorView, weight: TensorView | null, bias: TensorView | null): TensorView {
  const scaled = weight === null ? x : mul(x, alignRight(weight, x));
  return bias === null ? scaled : add(scaled, alignRight(bias, x));
}
