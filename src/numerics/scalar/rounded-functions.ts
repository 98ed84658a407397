/**
 * Library functions of float32 in primitives of double, rounded once, so that WebAssembly SIMD computes them, with the
 * bits of generated JavaScript. Double has the engine's functions, and CUDA its own. The largest errors that were measured
 * over dense samples (test/numerics/float-functions.sampled.test.ts) are 0.51 ulps.
 */
import { apply, bitsOf, choose, convert, type Expression, type LibraryFunction } from "./expression.ts";
import { add, double, float, mul, polynomial, sub, word } from "./steps.ts";
import { exp, expm1Quotient, log1p as log1pNear0, normalTail } from "./wide-functions.ts";

const zero = double(0);
const one = double(1);

/** exp(x ln 2), exact where x is a whole number: the error is far below half an ulp. */
function exp2(x: Expression): Expression {
  const power = convert("f32", exp(mul(convert("f64", x), double(Math.LN2))));
  return choose([x, "gt", float(128.5)], float(Infinity), choose([x, "lt", float(-151)], float(0), power));
}

/** Near 0 by the quotient's polynomial, which leaves the sign of 0; elsewhere little is lost when 1 is taken away. */
function expm1(x: Expression): Expression {
  const wide = convert("f64", x);
  const near = mul(wide, expm1Quotient(wide));
  const far = sub(exp(wide), one);
  const result = convert("f32", choose([apply("abs", wide), "lt", double(0.34)], near, far));
  return choose([x, "gt", float(88.8)], float(Infinity), choose([x, "lt", float(-104)], float(-1), result));
}

/** From 0.4 on log(1 + x) with 1 + x = 2^k m, m from sqrt(1/2) to sqrt(2), k from the exponent of its float32. */
function log1p(x: Expression): Expression {
  const wide = convert("f64", x);
  const whole = add(one, wide);
  const bits = bitsOf(convert("f32", whole));
  const k = apply("shr", sub(bits, word(0x3f35_04f3)), word(23));
  const half = apply("shr", k, word(1));
  /** 2^-k as a product of two: k may be 128. */
  const inverse = (exponent: Expression): Expression =>
    convert("f64", bitsOf(apply("shl", sub(word(127), exponent), word(23))));
  const m = mul(mul(whole, inverse(half)), inverse(sub(k, half)));
  const far = add(mul(convert("f64", k), double(Math.LN2)), log1pNear0(sub(m, one)));
  // -0 plus the series would be 0.
  const near = choose([wide, "eq", zero], wide, log1pNear0(wide));
  const finite = convert("f32", choose([apply("abs", wide), "lt", double(0.4)], near, far));
  const positive = choose([x, "lt", float(Infinity)], finite, x);
  return choose([x, "gt", float(-1)], positive, choose([x, "eq", float(-1)], float(-Infinity), float(NaN)));
}

/** (-1)^n / (n! (2n + 1)) times 2 / sqrt(pi): below 1 the Taylor series of erf(x) / x in x^2, to 2^-38. */
const erfSeries = Array.from({ length: 15 }, (_, n) => {
  const factorial = Array.from({ length: n }, (_unused, i) => i + 1).reduce((product, i) => product * i, 1);
  return ((n % 2 === 0 ? 1 : -1) * (2 / Math.sqrt(Math.PI))) / (factorial * (2 * n + 1));
});

/** From 1 on 1 - 2 Phi(-x sqrt(2)), with the sign of x. */
function erf(x: Expression): Expression {
  const wide = convert("f64", x);
  const u = apply("abs", wide);
  const near = mul(wide, polynomial(mul(wide, wide), erfSeries));
  // The tail is 0 from 5 on in float32, and its polynomial is made for numbers up to 14.
  const size = choose([u, "gt", double(6)], double(6), u);
  const far = sub(one, mul(double(2), normalTail(mul(size, double(Math.SQRT2)))));
  const signed = choose([wide, "lt", zero], apply("neg", far), far);
  const result = choose([u, "lt", one], near, signed);
  return convert("f32", choose([wide, "eq", wide], result, wide));
}

export const roundedFunctions = {
  exp2: { js: "exp2", c: "exp2", inFloat: exp2 },
  expm1: { js: "Math.expm1", c: "expm1", inFloat: expm1 },
  log1p: { js: "Math.log1p", c: "log1p", inFloat: log1p },
  erf: { js: "erf", c: "erf", inFloat: erf },
} as const satisfies Readonly<Record<string, LibraryFunction>>;
