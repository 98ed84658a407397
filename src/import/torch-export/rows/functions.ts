/** Rows of functions of elements that Braid composes. */
import type { BinaryOperand } from "../../../ir/api/ops/apply.ts";
import { eq, isnan, maximum, where } from "../../../ir/api/ops/choices.ts";
import { wide } from "../../../ir/api/ops/compositions/compose.ts";
import { add, div, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { abs, exp, log, log1p, neg, trunc } from "../../../ir/api/ops/functions.ts";
import { atan2, erfc, lerp } from "../../../ir/api/ops/powers.ts";
import { unsqueeze } from "../../../ir/api/ops/shape.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import type { NodeOperands } from "../operands.ts";
import { restOf } from "../../remainders.ts";
import { raised } from "../../views.ts";
import { asCount, factorIn } from "./elementwise.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";

/** In float32 where the tensor is of 16 bits: the result is rounded once, as PyTorch's kernels round. */
export function ofWide(apply: (x: TensorView, o: NodeOperands) => TensorView): AtenRow {
  return (o) => apply(wide(o.tensor("self")), o);
}

/** log(exp(a) + exp(b)), also of equal infinities. */
function logAddExp(a: TensorView, b: TensorView): TensorView {
  const most = maximum(a, b);
  const distance = where(eq(a, b), 0, neg(abs(sub(a, b))));
  return add(most, log1p(exp(distance)));
}

const nanToNum: AtenRow = (o) => {
  const x = o.tensor("self");
  if (dtypes[x.dtype].family !== "float") return x;
  const largest = { double: Number.MAX_VALUE, float: 3.4028234663852886e38, bfloat16: 3.3895313892515355e38 };
  const bound = x.dtype === "double" || x.dtype === "float" || x.dtype === "bfloat16" ? largest[x.dtype] : 65504;
  const finite = where(isnan(x), o.number("nan", 0), x);
  const below = where(eq(finite, Infinity), o.number("posinf", bound), finite);
  return where(eq(x, -Infinity), o.number("neginf", -bound), below);
};

const pair =
  (apply: (a: TensorView, b: BinaryOperand, o: NodeOperands) => TensorView): AtenRow =>
  (o) => {
    const [a, b] = [o.tensor("self"), o.operand("other")];
    const rank = Math.max(a.rank, typeof b === "object" ? b.rank : 0);
    return apply(raised(a, rank), typeof b === "object" ? raised(b, rank) : b, o);
  };

const lerpRow: AtenRow = (o) => {
  const [a, b, weight] = [o.tensor("self"), o.tensor("end"), o.operand("weight")];
  const rank = Math.max(a.rank, b.rank, typeof weight === "object" ? weight.rank : 0);
  return lerp(raised(a, rank), raised(b, rank), typeof weight === "object" ? raised(weight, rank) : weight);
};

const addcdiv: AtenRow = (o) => {
  const [x, a, b] = [o.tensor("self"), o.tensor("tensor1"), o.tensor("tensor2")];
  const rank = Math.max(x.rank, a.rank, b.rank);
  return add(raised(x, rank), mul(div(raised(a, rank), raised(b, rank)), factorIn(o, "value")));
};

export const functionRows: AtenRows = atenRows({
  "erfc.default special_erfc.default": ofWide(erfc),
  "log10.default": ofWide((x) => mul(log(x), Math.LOG10E)),
  "frac.default": (o) => sub(o.tensor("self"), trunc(o.tensor("self"))),
  "nan_to_num.default(self nan posinf neginf)": nanToNum,
  "atan2.default(self other)": pair(atan2),
  "fmod.Tensor fmod.Scalar(self other)": pair((a, b, o) =>
    restOf(a, b, o.resultDType !== null && dtypes[o.resultDType].family === "integer"),
  ),
  "logaddexp.default(self other)": pair((a, b, o) =>
    typeof b === "object" ? logAddExp(wide(a), wide(b)) : o.refuse("a number", "two tensors"),
  ),
  "lerp.Scalar lerp.Tensor(self end weight)": lerpRow,
  "addcdiv.default(self tensor1 tensor2 * value)": addcdiv,
  "outer.default ger.default(self vec2)": (o) =>
    mul(unsqueeze(asCount(o.tensor("self")), 1), unsqueeze(asCount(o.tensor("vec2")), 0)),
});
