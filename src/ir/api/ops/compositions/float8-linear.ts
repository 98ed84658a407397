/** Linears that train in floats of 8 bits, as torchtitan's recipes do: all three products quantize what they read. */
import type { DType } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import type { Float8Recipe } from "../../../fusion-data.ts";
import { constantValue, foldProduct } from "../../../scalar/fold.ts";
import { internals } from "../../handle.ts";
import type { TensorView } from "../../tensor-view.ts";
import { linear, scaledLinear } from "../contractions.ts";
import { add } from "../elementwise.ts";
import { permute, reshape, squeeze } from "../views.ts";
import { alignRight, floatCall, inDType, mark } from "./compose.ts";
import { quantize } from "./quantize.ts";

/**
 * `linear` of operands that are quantized, with scales of rows (`rowwise`) or of tensors (`tensorwise`). So are both
 * gradients, which pass the rounding as if it were none: operands in float8_e4m3fn, and the cotangent, where
 * `tensorwise`, in float8_e5m2. A product of a depth that 16 does not divide is not quantized. Throws `shape-mismatch`,
 * `dtype-mismatch`, `foreign-tensor`.
 */
export function float8Linear(
  x: TensorView,
  weight: TensorView,
  bias: TensorView | null = null,
  recipe: Float8Recipe = "rowwise",
): TensorView {
  floatCall("float8Linear", [x, weight]);
  const y = float8Product(x, weight, recipe, "float8_e4m3fn");
  mark(y, {
    name: "float8Linear",
    operands: { x: x.id, weight: weight.id },
    outputs: [y.id],
    kept: [],
    axes: [],
    recipe,
  });
  return bias === null ? y : add(y, alignRight(inDType(bias, y.dtype), y));
}

/** a [.., K] b [N, K]^T in the dtype of a, which is quantized to `ofA`. */
export function float8Product(a: TensorView, b: TensorView, recipe: Float8Recipe, ofA: DType): TensorView {
  const depth = constantValue(at(b.extents, b.rank - 1));
  if (b.rank !== 2 || depth === null || depth % 16 !== 0 || a.dtype === "double") return linear(a, b);
  const granularity = recipe === "rowwise" ? "row" : "tensor";
  const quantized = (x: TensorView, dtype: DType): readonly [TensorView, TensorView] => {
    const { values, scale } = quantize(x, { granularity, dtype });
    return [values, recipe === "rowwise" ? squeeze(scale, [x.rank - 1]) : scale];
  };
  const [p, q] = inCommon(a, () => [quantized(a, ofA), quantized(b, "float8_e4m3fn")] as const);
  return scaledLinear(p[0], q[0], p[1], q[1], { dtype: a.dtype });
}

/** The columns of all rows: [.., N] as [N, M]. */
export function columnsOf(x: TensorView): TensorView {
  const last = at(x.extents, x.rank - 1);
  return inCommon(x, () => permute(x.rank === 2 ? x : reshape(x, [foldProduct(x.extents.slice(0, -1)), last]), [1, 0]));
}

/** Linears that read one tensor quantize it once, and devices gather it once. */
function inCommon<T>(x: TensorView, make: () => T): T {
  const { builder } = x[internals];
  builder.shares = true;
  try {
    return make();
  } finally {
    builder.shares = false;
  }
}
