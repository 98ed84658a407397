/**
 * The elementwise functions of one operand, one row each (unary/). A new function is a row there and an exported
 * function in api/ops/elementwise. Dtype checks, kernels of all back ends, costs, printing and parsing read the row.
 * The oracle has a second definition of each function, with its error bound (oracle/definitions).
 */
import {
  apply,
  call,
  choose,
  constant,
  convert,
  type Expression,
  type LibraryFunction,
} from "../../../numerics/scalar/expression.ts";
import { floatFunctions } from "../../../numerics/scalar/float-functions.ts";
import { roundedFunctions } from "../../../numerics/scalar/rounded-functions.ts";
import { wideFunctions } from "../../../numerics/scalar/wide-functions.ts";
import type { OperandClass } from "../dtype-rules.ts";
import { elementWork } from "../row.ts";

// Exponentials, logarithms and trigonometric functions.

const exponential = {
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
  tan: {
    operand: "float",
    expression: (x) => call({ js: "Math.tan", c: "tan" }, x),
    work: 245,
    alsoRead: ["tanf"],
  },
  asin: {
    operand: "float",
    expression: (x) => call({ js: "Math.asin", c: "asin" }, x),
    work: 245,
    alsoRead: ["asinf"],
  },
  acos: {
    operand: "float",
    expression: (x) => call({ js: "Math.acos", c: "acos" }, x),
    work: 245,
    alsoRead: ["acosf"],
  },
  atan: {
    operand: "float",
    expression: (x) => call({ js: "Math.atan", c: "atan" }, x),
    work: 245,
    alsoRead: ["atanf"],
  },
  sinh: {
    operand: "float",
    expression: (x) => call({ js: "Math.sinh", c: "sinh" }, x),
    work: 245,
    alsoRead: ["sinhf"],
  },
  cosh: {
    operand: "float",
    expression: (x) => call({ js: "Math.cosh", c: "cosh" }, x),
    work: 245,
    alsoRead: ["coshf"],
  },
} as const satisfies Readonly<Record<string, UnaryFunction>>;

// Functions that every back end rounds correctly, but for rsqrt.

const arithmetic = {
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

// Activations and what they are made of. sigmoid, silu and gelu are computed in the type of their operand. The others of
// several steps are computed in double and rounded once, but for double itself and CUDA.

type Library = { readonly [Name in keyof typeof wideFunctions]: LibraryFunction };

/** For operands of double. */
const engine: Library = {
  exp: floatFunctions.exp,
  log1p: { js: "Math.log1p", c: "log1p" },
  normalCdf: floatFunctions.normalCdf,
};

/** In double, rounded once to the type of x. */
function inDouble(x: Expression, compute: (wide: Expression, library: Library) => Expression): Expression {
  return convert(x.type, compute(convert("f64", x), x.type === "f64" ? engine : wideFunctions));
}

const double = (value: number): Expression => constant("f64", value);

/** 1 / (1 + exp(-x)). With e = exp(-|x|), which does not overflow, it is 1 / (1 + e), or e / (1 + e) below 0. */
function sigmoid(x: Expression): Expression {
  const [zero, one] = [constant(x.type, 0), constant(x.type, 1)];
  const e = call(floatFunctions.expBelow, apply("neg", apply("abs", x)));
  return apply("div", choose([x, "lt", zero], e, one), apply("add", one, e));
}

/**
 * x / (1 + e), or x e / (1 + e) below 0, with e as in sigmoid, here as the square of h = exp(-|x| / 2): h stays normal
 * where e is subnormal and the result is not. A choice of forms instead made kernels 1.3 to 1.5 times as long on GPUs.
 */
function silu(x: Expression): Expression {
  const [zero, one, half] = [constant(x.type, 0), constant(x.type, 1), constant(x.type, 0.5)];
  const h = call(floatFunctions.expBelow, apply("neg", apply("mul", half, apply("abs", x))));
  const product = apply("mul", apply("mul", x, h), h);
  return apply("div", choose([x, "lt", zero], product, x), apply("add", one, apply("mul", h, h)));
}

/** log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which neither overflows nor loses small results. */
function softplus(x: Expression, { exp, log1p }: Library): Expression {
  const e = call(exp, apply("neg", apply("abs", x)));
  return apply("add", apply("max", x, double(0)), call(log1p, e));
}

/** 0.5 x (1 + tanh(y)) = x sigmoid(2 y), with y = sqrt(2 / pi) (x + 0.044715 x^3). */
function geluTanh(x: Expression): Expression {
  const factor = (value: number): Expression => constant(x.type, value);
  const cube = apply("mul", apply("mul", x, x), x);
  const inner = apply("add", x, apply("mul", factor(0.044715), cube));
  return apply("mul", x, sigmoid(apply("mul", factor(2 * Math.sqrt(2 / Math.PI)), inner)));
}

const activations = {
  /** NaN stays NaN, as in PyTorch. */
  relu: {
    operand: "number",
    expression: (x) => apply("max", x, constant(x.type, 0)),
    work: elementWork,
    alsoRead: [],
  },
  /** The exact form, x * (1 + erf(x / sqrt(2))) / 2. */
  gelu: {
    operand: "float",
    expression: (x) => apply("mul", x, call(floatFunctions.normalCdf, x)),
    work: 150,
    alsoRead: [],
  },
  geluTanh: {
    operand: "float",
    expression: geluTanh,
    work: 140,
    printed: "gelu_tanh",
    alsoRead: ["geluTanh"],
  },
  sigmoid: {
    operand: "float",
    expression: sigmoid,
    work: 90,
    alsoRead: [],
  },
  /** x sigmoid(x). */
  silu: {
    operand: "float",
    expression: silu,
    work: 90,
    alsoRead: [],
  },
  softplus: { operand: "float", expression: (x) => inDouble(x, softplus), work: 110, alsoRead: [] },
  tanh: {
    operand: "float",
    expression: (x) => call(floatFunctions.tanh, x),
    work: 80,
    alsoRead: ["tanhf"],
  },
  erf: {
    operand: "float",
    expression: (x) => call(roundedFunctions.erf, x),
    work: 190,
    alsoRead: ["erff"],
  },
  /** The cumulative distribution function of the normal distribution. */
  normalCdf: {
    operand: "float",
    expression: (x) => inDouble(x, (wide, { normalCdf }) => call(normalCdf, wide)),
    work: 500,
    printed: "normal_cdf",
    alsoRead: ["normalCdf"],
  },
} as const satisfies Readonly<Record<string, UnaryFunction>>;

const rows = { ...arithmetic, ...exponential, ...activations } as const;

export type UnaryOpType = keyof typeof rows;

export const unaryFunctions: { readonly [K in UnaryOpType]: UnaryFunction } = rows;

interface UnaryFunction {
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
