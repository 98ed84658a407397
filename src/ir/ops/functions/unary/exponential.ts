/** Exponentials, logarithms and trigonometric functions. */
import { call } from "../../../../numerics/scalar/expression.ts";
import { floatFunctions } from "../../../../numerics/scalar/float-functions.ts";
import { roundedFunctions } from "../../../../numerics/scalar/rounded-functions.ts";
import type { UnaryFunction } from "./row.ts";

export const exponential = {
  exp: {
    operand: "float",
    expression: (x) => call(floatFunctions.exp, x),
    work: 24,
    alsoRead: ["expf"],
  },
  /** 2 to the power of x. */
  exp2: {
    operand: "float",
    expression: (x) => call(roundedFunctions.exp2, x),
    work: 76,
    alsoRead: ["exp2f"],
  },
  /** exp(x) - 1, accurate near 0. */
  expm1: {
    operand: "float",
    expression: (x) => call(roundedFunctions.expm1, x),
    work: 96,
    alsoRead: ["expm1f"],
  },
  /** -Infinity at 0, NaN below. */
  log: {
    operand: "float",
    expression: (x) => call(floatFunctions.log, x),
    work: 36,
    alsoRead: ["logf"],
  },
  /** The logarithm to base 2. */
  log2: {
    operand: "float",
    expression: (x) => call({ js: "Math.log2", c: "log2" }, x),
    work: 150,
    alsoRead: ["log2f"],
  },
  /** log(1 + x), accurate near 0. */
  log1p: {
    operand: "float",
    expression: (x) => call(roundedFunctions.log1p, x),
    work: 150,
    alsoRead: ["log1pf"],
  },
  sin: {
    operand: "float",
    expression: (x) => call({ js: "Math.sin", c: "sin" }, x),
    work: 245,
    alsoRead: ["sinf"],
  },
  cos: {
    operand: "float",
    expression: (x) => call({ js: "Math.cos", c: "cos" }, x),
    work: 245,
    alsoRead: ["cosf"],
  },
} as const satisfies Readonly<Record<string, UnaryFunction>>;
