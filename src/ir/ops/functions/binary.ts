/** The elementwise functions of two operands, one row each. All back ends round their results correctly. */
import { apply, choose, constant, type Expression } from "../../../numerics/scalar/expression.ts";

export interface BinaryFunction {
  /** The result for operands of one compute type, before rounding to half or bfloat16. */
  readonly expression: (x: Expression, y: Expression) => Expression;
  /** The operator between the operands in dumps. */
  readonly symbol: string;
}

const rows = {
  add: {
    expression: (x, y) => apply("add", x, y),
    symbol: "+",
  },
  sub: {
    expression: (x, y) => apply("sub", x, y),
    symbol: "-",
  },
  mul: {
    expression: (x, y) => apply("mul", x, y),
    symbol: "*",
  },
  /** Integers truncate toward zero, and x / 0 is 0. */
  div: {
    expression: (x, y) => {
      const quotient = apply("div", x, y);
      if (x.type === "f32" || x.type === "f64") return quotient;
      const zero = constant(x.type, 0);
      return choose([y, "eq", zero], zero, quotient);
    },
    symbol: "/",
  },
} as const satisfies Readonly<Record<string, BinaryFunction>>;

export type BinaryOpType = keyof typeof rows;

export const binaryFunctions: { readonly [K in BinaryOpType]: BinaryFunction } = rows;
