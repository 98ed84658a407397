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
import { floatFunctions, siluInFloat } from "../../../numerics/scalar/float-functions.ts";
import { roundedFunctions } from "../../../numerics/scalar/rounded-functions.ts";
import { wideFunctions } from "../../../numerics/scalar/wide-functions.ts";
import type { OperandClass } from "../dtype-rules.ts";
import { elementWork } from "../row.ts";

/** A function of floats. `alsoRead`: other spellings in nvFuser's dumps. */
function ofFloats(
  expression: UnaryFunction["expression"],
  work: number = elementWork,
  ...alsoRead: readonly string[]
): UnaryFunction {
  return { operand: "float", expression, work, alsoRead };
}

/** One that the mathematical library has. CUDA's float32 form ends in f, as it does in nvFuser's dumps. */
function ofLibrary(name: string, work: number): UnaryFunction {
  return ofFloats((x) => call({ js: `Math.${name}`, c: name }, x), work, `${name}f`);
}

// Exponentials, logarithms and trigonometric functions.

const exponential = {
  exp: ofFloats((x) => call(floatFunctions.exp, x), 24, "expf"),
  /** 2 to the power of x. */
  exp2: ofFloats((x) => call(roundedFunctions.exp2, x), 76, "exp2f"),
  /** exp(x) - 1, accurate near 0. */
  expm1: ofFloats((x) => call(roundedFunctions.expm1, x), 96, "expm1f"),
  /** -Infinity at 0, NaN below. */
  log: ofFloats((x) => call(floatFunctions.log, x), 36, "logf"),
  /** The logarithm to base 2. */
  log2: ofLibrary("log2", 150),
  /** log(1 + x), accurate near 0. */
  log1p: ofFloats((x) => call(roundedFunctions.log1p, x), 150, "log1pf"),
  sin: ofLibrary("sin", 245),
  cos: ofLibrary("cos", 245),
  tan: ofLibrary("tan", 245),
  asin: ofLibrary("asin", 245),
  acos: ofLibrary("acos", 245),
  atan: ofLibrary("atan", 245),
  sinh: ofLibrary("sinh", 245),
  cosh: ofLibrary("cosh", 245),
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
  floor: ofFloats((x) => apply("floor", x)),
  ceil: ofFloats((x) => apply("ceil", x)),
  trunc: ofFloats((x) => apply("trunc", x)),
  /** Halves go to the even neighbour, as in PyTorch. */
  round: { ...ofFloats((x) => apply("nearest", x), elementWork, "round"), printed: "nearbyint" },
  /** NaN for negative numbers; -0 stays -0. */
  sqrt: ofFloats((x) => apply("sqrt", x), 24, "sqrtf"),
  /** 1 / sqrt(x), computed in double and rounded once. At 0 infinite with the sign of x; NaN for negative x. */
  rsqrt: ofFloats(
    (x) => convert(x.type, apply("div", constant("f64", 1), apply("sqrt", convert("f64", x)))),
    40,
    "rsqrtf",
  ),
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
function composedSilu(x: Expression): Expression {
  const [zero, one, half] = [constant(x.type, 0), constant(x.type, 1), constant(x.type, 0.5)];
  const h = call(floatFunctions.expBelow, apply("neg", apply("mul", half, apply("abs", x))));
  const product = apply("mul", apply("mul", x, h), h);
  return apply("div", choose([x, "lt", zero], product, x), apply("add", one, apply("mul", h, h)));
}

const silu: LibraryFunction = { js: "silu", c: "silu", inFloat: siluInFloat, composed: composedSilu };

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
  relu: { operand: "number", expression: (x) => apply("max", x, constant(x.type, 0)), work: elementWork, alsoRead: [] },
  /** The exact form, x * (1 + erf(x / sqrt(2))) / 2. */
  gelu: ofFloats((x) => apply("mul", x, call(floatFunctions.normalCdf, x)), 85),
  geluTanh: { ...ofFloats(geluTanh, 140, "geluTanh"), printed: "gelu_tanh" },
  sigmoid: ofFloats(sigmoid, 90),
  /** x sigmoid(x). */
  silu: ofFloats((x) => call(silu, x), 90),
  softplus: ofFloats((x) => inDouble(x, softplus), 110),
  tanh: ofFloats((x) => call(floatFunctions.tanh, x), 80, "tanhf"),
  erf: ofFloats((x) => call(roundedFunctions.erf, x), 190, "erff"),
  /** The cumulative distribution function of the normal distribution. */
  normalCdf: {
    ...ofFloats((x) => inDouble(x, (wide, { normalCdf }) => call(normalCdf, wide)), 500, "normalCdf"),
    printed: "normal_cdf",
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
