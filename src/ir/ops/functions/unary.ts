/**
 * The elementwise functions of one operand, one row each. A new function is a row here and an exported function in
 * api/ops.ts. Dtype checks, kernels of all back ends, costs, the oracle's bounds, printing and parsing read the row.
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
  readonly error: UnaryError;
  /** Other spellings in nvFuser's dumps. Braid prints the function's name. */
  readonly alsoRead: readonly string[];
}

/**
 * The largest error of a correct back end, before it rounds to the dtype. `output` is the absolute value of the result.
 */
export interface UnaryError {
  /** Number of roundings relative to `magnitude`: twice the ulps of the least accurate mathematical library. */
  readonly roundings: number;
  readonly magnitude: (input: number, output: number) => number;
  /** The largest change of the result when `input` changes by up to `by`. */
  readonly spread: (by: number, input: number, output: number) => number;
}

/** All back ends give the same result, and it changes as much as the operand. */
const exact: UnaryError = { roundings: 0, magnitude: () => 0, spread: (by) => by };

const rows = {
  neg: {
    operand: "number",
    expression: (x) => apply("neg", x),
    work: elementWork,
    error: exact,
    // Also printed as `-T0`, which the parser reads as an operator.
    alsoRead: [],
  },
  abs: {
    operand: "number",
    expression: (x) => apply("abs", x),
    work: elementWork,
    error: exact,
    alsoRead: ["fabs", "fabsf"],
  },
  /** NaN stays NaN, as in PyTorch. */
  relu: {
    operand: "number",
    expression: (x) => apply("max", x, constant(x.type, 0)),
    work: elementWork,
    error: exact,
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
    // 1 + erf cancels for negative inputs, so the error is relative to the input. The steepest slope of gelu is 1.129.
    error: { roundings: 4, magnitude: (input) => Math.abs(input), spread: (by) => 1.13 * by },
    alsoRead: [],
  },
  exp: {
    operand: "float",
    expression: (x) => call({ js: "Math.exp", c: "exp" }, x),
    work: 128,
    error: {
      roundings: 4,
      magnitude: (_, output) => output,
      spread: (by, _, output) => output * Math.expm1(by),
    },
    alsoRead: ["expf"],
  },
  tanh: {
    operand: "float",
    expression: (x) => call({ js: "Math.tanh", c: "tanh" }, x),
    work: 200,
    error: { roundings: 4, magnitude: (_, output) => output, spread: (by) => by },
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
    error: {
      roundings: 4,
      magnitude: (_, output) => output,
      spread: (by, input, output) => (by < input ? (by * output) / (2 * (input - by)) : Infinity),
    },
    alsoRead: ["rsqrtf"],
  },
} as const satisfies Readonly<Record<string, UnaryFunction>>;

export type UnaryOpType = keyof typeof rows;

export const unaryFunctions: { readonly [K in UnaryOpType]: UnaryFunction } = rows;
