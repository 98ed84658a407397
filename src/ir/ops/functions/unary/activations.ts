/**
 * Activations and what they are made of. sigmoid, silu and gelu are computed in the type of their operand. The others of
 * several steps are computed in double and rounded once, but for double itself and CUDA.
 */
import {
  apply,
  call,
  choose,
  constant,
  convert,
  type Expression,
  type LibraryFunction,
} from "../../../../numerics/scalar/expression.ts";
import { floatFunctions } from "../../../../numerics/scalar/float-functions.ts";
import { roundedFunctions } from "../../../../numerics/scalar/rounded-functions.ts";
import { wideFunctions } from "../../../../numerics/scalar/wide-functions.ts";
import { elementWork } from "../../row.ts";
import type { UnaryFunction } from "./row.ts";

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
 * x / (1 + e), or x e / (1 + e) below 0, with e as in sigmoid. Where e is subnormal and the result not, x is multiplied
 * twice with the root of e.
 */
function silu(x: Expression): Expression {
  const [zero, one, far] = [constant(x.type, 0), constant(x.type, 1), constant(x.type, 80)];
  const size = apply("abs", x);
  const root = choose([size, "gt", far], apply("mul", constant(x.type, 0.5), size), size);
  const e = call(floatFunctions.expBelow, apply("neg", root));
  const product = apply("mul", apply("mul", x, e), choose([size, "gt", far], e, one));
  return apply("div", choose([x, "lt", zero], product, x), apply("add", one, e));
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

export const activations = {
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
