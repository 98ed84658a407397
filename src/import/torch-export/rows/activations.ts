/** Rows of activation functions, with PyTorch's gradients where they have corners. */
import { clamp, ge, gt, le, lt, where } from "../../../ir/api/ops/choices.ts";
import { add, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { abs, expm1, neg, sigmoid, softplus, tanh } from "../../../ir/api/ops/functions.ts";
import { chunk } from "../../../ir/api/ops/shape.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { alongAxis } from "../../views.ts";
import { ofWide } from "./functions.ts";
import { type AtenRows, atenRows } from "./row.ts";

/** Without a slope at its bounds, other than `clamp`. */
function between(x: TensorView, least: number, most: number): TensorView {
  return where(le(x, least), least, where(ge(x, most), most, x));
}

const hardSigmoid = (x: TensorView): TensorView => mul(add(between(x, -3, 3), 3), 1 / 6);

function eluOf(x: TensorView, alpha: number, scale: number, inside: number): TensorView {
  // The branch that is not taken stays finite.
  const below = expm1(mul(clamp(x, null, 0), inside));
  return where(gt(x, 0), mul(x, scale), mul(below, alpha * scale));
}

const leaky = (x: TensorView, slope: TensorView | number): TensorView => where(gt(x, 0), x, mul(x, slope));

export const atenActivationRows: AtenRows = atenRows({
  "relu6.default": ofWide((x) => between(x, 0, 6)),
  "hardtanh.default(self min_val max_val)": ofWide((x, o) =>
    between(x, o.number("min_val", -1), o.number("max_val", 1)),
  ),
  "hardsigmoid.default": ofWide(hardSigmoid),
  "hardswish.default": ofWide((x) => mul(x, hardSigmoid(x))),
  "leaky_relu.default(self negative_slope)": ofWide((x, o) => leaky(x, o.number("negative_slope", 0.01))),
  "prelu.default _prelu_kernel.default(self weight)": ofWide((x, o) => {
    const weight = o.tensor("weight");
    const isChannel = weight.rank === 1 && x.rank > 1;
    return leaky(x, isChannel ? alongAxis(weight, 1, x.rank) : weight);
  }),
  "elu.default(self alpha scale input_scale)": ofWide((x, o) =>
    eluOf(x, o.number("alpha", 1), o.number("scale", 1), o.number("input_scale", 1)),
  ),
  "celu.default(self alpha)": ofWide((x, o) => eluOf(x, o.number("alpha", 1), 1, 1 / o.number("alpha", 1))),
  "selu.default": ofWide((x) => eluOf(x, 1.6732632423543772, 1.0507009873554805, 1)),
  "mish.default": ofWide((x) => mul(x, tanh(softplus(x)))),
  "log_sigmoid.default": ofWide((x) => neg(softplus(neg(x)))),
  "glu.default(self dim)": ofWide((x, o) => {
    const [value, gate] = chunk(x, 2, o.whole("dim", -1));
    return value === undefined || gate === undefined ? x : mul(value, sigmoid(gate));
  }),
  "threshold.default(self threshold value)": ofWide((x, o) =>
    where(gt(x, o.number("threshold")), x, o.number("value")),
  ),
  "hardshrink.default(self lambd)": ofWide((x, o) => where(le(abs(x), o.number("lambd", 0.5)), 0, x)),
  "softshrink.default(self lambd)": ofWide((x, o) => {
    const by = o.number("lambd", 0.5);
    return where(gt(x, by), sub(x, by), where(lt(x, -by), add(x, by), mul(x, 0)));
  }),
});
