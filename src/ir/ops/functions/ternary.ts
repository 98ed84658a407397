/** The elementwise functions of three operands, a condition and two values, one row each. */
import { choose, constant, type Expression } from "../../../numerics/scalar/expression.ts";

export interface TernaryFunction {
  /** The result for a bool, as i32, and two values of one compute type. Exact. */
  readonly expression: (condition: Expression, x: Expression, y: Expression) => Expression;
}

const rows = {
  /** x where the condition is true, else y. */
  where: { expression: (condition, x, y) => choose([condition, "ne", constant("i32", 0)], x, y) },
} as const satisfies Readonly<Record<string, TernaryFunction>>;

export type TernaryOpType = keyof typeof rows;

export const ternaryFunctions: { readonly [K in TernaryOpType]: TernaryFunction } = rows;
