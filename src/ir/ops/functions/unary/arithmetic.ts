/** Functions that every back end rounds correctly, but for rsqrt. */
import { apply, choose, constant, convert, type Expression } from "../../../../numerics/scalar/expression.ts";
import { elementWork } from "../../row.ts";
import type { UnaryFunction } from "./row.ts";

export const arithmetic = {
  neg: {
    operand: "number",
    expression: (x) => apply("neg", x),
    work: elementWork,
    // Also printed as `-T0`, which the parser reads as an operator.
    alsoRead: [],
  },
  abs: {
    operand: "number",
    expression: (x) => apply("abs", x),
    work: elementWork,
    alsoRead: ["fabs", "fabsf"],
  },
  /** -1, 0 or 1. NaN stays NaN; -0 becomes 0. */
  sign: {
    operand: "number",
    expression: (x) => {
      const [zero, one] = [constant(x.type, 0), constant(x.type, 1)];
      const rest = choose([x, "eq", zero], zero, x);
      return choose([x, "gt", zero], one, choose([x, "lt", zero], constant(x.type, -1), rest));
    },
    work: 6,
    alsoRead: [],
  },
  logicalNot: {
    operand: "bool",
    expression: (x) => apply("sub", constant(x.type, 1), x),
    work: elementWork,
    printed: "logical_not",
    // Also printed as `!T0`.
    alsoRead: ["logicalNot"],
  },
  floor: { operand: "float", expression: (x) => apply("floor", x), work: elementWork, alsoRead: [] },
  ceil: { operand: "float", expression: (x) => apply("ceil", x), work: elementWork, alsoRead: [] },
  trunc: { operand: "float", expression: (x) => apply("trunc", x), work: elementWork, alsoRead: [] },
  /** Halves go to the even neighbour, as in PyTorch. */
  round: {
    operand: "float",
    expression: (x) => apply("nearest", x),
    work: elementWork,
    printed: "nearbyint",
    alsoRead: ["round"],
  },
  /** NaN for negative numbers; -0 stays -0. */
  sqrt: { operand: "float", expression: (x) => apply("sqrt", x), work: 24, alsoRead: ["sqrtf"] },
  /** 1 / sqrt(x), computed in double and rounded once. At 0 infinite with the sign of x; NaN for negative x. */
  rsqrt: {
    operand: "float",
    expression: (x): Expression => {
      const root = apply("sqrt", convert("f64", x));
      return convert(x.type, apply("div", constant("f64", 1), root));
    },
    work: 40,
    alsoRead: ["rsqrtf"],
  },
} as const satisfies Readonly<Record<string, UnaryFunction>>;
