/** The API call of every row of src/ir/ops/functions/unary. Most have its name. */
import * as api from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { OperandClass } from "../../src/ir/ops/dtype-rules.ts";
import type { UnaryOpType } from "../../src/ir/ops/op.ts";
import { type DType, dtypes, isComputed } from "../../src/numerics/dtype.ts";

export const unaryCalls: { readonly [Op in UnaryOpType]: (x: TensorView) => TensorView } = {
  ...api,
  geluTanh: (x) => api.gelu(x, "tanh"),
};

/** Whether a function of this class of operands takes the dtype as it is. */
export function takes(operand: OperandClass, dtype: DType): boolean {
  if (!isComputed(dtype)) return false;
  const { family } = dtypes[dtype];
  return operand === "any" || family === operand || (operand === "number" && family !== "bool");
}
