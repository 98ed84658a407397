/**
 * The elementwise functions of one operand, one row each. A new function is a row here and an exported function in
 * api/ops.ts. Dtype checks, kernels of all back ends, costs, printing and parsing read the row. The oracle has a second
 * definition of each function, with its error bound (oracle/definitions.ts).
 */
import { apply, call, constant, convert, type Expression } from "../../../numerics/scalar/expression.ts";
import { elementWork } from "../row.ts";

export interface UnaryFunction {
  /** The accepted dtypes; never bool. The API casts integers to float for a float function. */
  readonly operand: "number" | "float";
  /** The result for an operand of any compute type, before rounding to half or bfloat16. */
  readonly expression: (x: Expression) => Expression;
  /** CPU time per element, in units of `elementWork` (row.ts). */
  readonly work: number;
  /** Other spellings in nvFuser's dumps. Braid prints the function's name. */
  readonly alsoRead: readonly string[];
}

const rows = {
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
  /** NaN stays NaN, as in PyTorch. */
  relu: {
    operand: "number",
    expression: (x) => apply("max", x, constant(x.type, 0)),
    work: elementWork,
    alsoRead: [],
  },
  /** The exact form, x * (1 + erf(x / sqrt(2))) / 2, in double and rounded once. */
  gelu: {
    operand: "float",
    expression: (x) => {
      const wide = convert("f64", x);
      return convert(x.type, apply("mul", wide, call({ js: "normalCdf", c: "normcdf" }, wide)));
    },
    work: 512,
    alsoRead: [],
  },
  exp: {
    operand: "float",
    expression: (x) => call({ js: "Math.exp", c: "exp" }, x),
    work: 128,
    alsoRead: ["expf"],
  },
  tanh: {
    operand: "float",
    expression: (x) => call({ js: "Math.tanh", c: "tanh" }, x),
    work: 200,
    alsoRead: ["tanhf"],
  },
  /** 1 / sqrt(x), computed in double and rounded once. At 0 infinite with the sign of x; NaN for negative x. */
  rsqrt: {
    operand: "float",
    expression: (x) => {
      const root = apply("sqrt", convert("f64", x));
      return convert(x.type, apply("div", constant("f64", 1), root));
    },
    work: 40,
    alsoRead: ["rsqrtf"],
  },
} as const satisfies Readonly<Record<string, UnaryFunction>>;

export type UnaryOpType = keyof typeof rows;

export const unaryFunctions: { readonly [K in UnaryOpType]: UnaryFunction } = rows;
