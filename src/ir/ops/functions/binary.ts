/** The elementwise functions of two operands, one row each. All back ends round their results correctly. */
import { apply, choose, constant, type Expression } from "../../../numerics/scalar/expression.ts";

export interface BinaryFunction {
  /** The result for operands of one compute type, before rounding to half or bfloat16. */
  readonly expression: (x: Expression, y: Expression) => Expression;
  /** The largest change of the result for given changes of the operands. Integer results are `truncated`. */
  readonly spread: (x: Moved, y: Moved, truncated: boolean) => number;
  /** The operator between the operands in dumps. */
  readonly symbol: string;
}

/** The absolute value of an operand and the largest change of the operand. */
export interface Moved {
  readonly size: number;
  readonly by: number;
}

const rows = {
  add: {
    expression: (x, y) => apply("add", x, y),
    spread: (x, y) => x.by + y.by,
    symbol: "+",
  },
  sub: {
    expression: (x, y) => apply("sub", x, y),
    spread: (x, y) => x.by + y.by,
    symbol: "-",
  },
  mul: {
    expression: (x, y) => apply("mul", x, y),
    spread: (x, y) => x.size * y.by + y.size * x.by + x.by * y.by,
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
    // |x/y - x'/y'|, for y' bounded away from 0.
    spread: (x, y, truncated) =>
      y.size <= y.by ? Infinity : ((x.size / y.size) * y.by + x.by) / (y.size - y.by) + (truncated ? 1 : 0),
    symbol: "/",
  },
} as const satisfies Readonly<Record<string, BinaryFunction>>;

export type BinaryOpType = keyof typeof rows;

export const binaryFunctions: { readonly [K in BinaryOpType]: BinaryFunction } = rows;
