import type { Expression } from "../../../../numerics/scalar/expression.ts";
import type { OperandClass } from "../../dtype-rules.ts";

export interface UnaryFunction {
  /** The accepted dtypes. The API casts integers to float for a float function. */
  readonly operand: OperandClass;
  /** The result for an operand of any compute type, before rounding to half or bfloat16. */
  readonly expression: (x: Expression) => Expression;
  /** CPU time per element, in units of `elementWork` (ir/ops/row.ts). */
  readonly work: number;
  /** The name in dumps, if it is not the function's. */
  readonly printed?: string;
  /** Other spellings in nvFuser's dumps. */
  readonly alsoRead: readonly string[];
}
