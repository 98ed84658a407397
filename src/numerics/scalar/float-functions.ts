/**
 * Library functions of float32 in primitives of float32, so that WebAssembly SIMD computes them, with the bits of
 * generated JavaScript. Double has the engine's functions, and CUDA its own. The largest errors that were measured over
 * dense samples (test/numerics/float-functions.sampled.test.ts), in ulps: exp 1.0, log 0.9, tanh 1.4. That of normalCdf
 * is of 1, not of the result: gelu multiplies it with its operand.
 *
 * Coefficients are least-squares fits, reweighted until the largest relative error is least.
 */
import { apply, bitsOf, choose, convert, type Expression, type LibraryFunction } from "./expression.ts";
import { add, div, float, mul, polynomial, powerOfTwo, sub, word } from "./steps.ts";

const zero = float(0);
const one = float(1);
const two = float(2);

/** ln 2 in two terms. The first has 9 bits, so that its products with k are exact. */
const ln2High = float(0.693359375);
const ln2Low = float(Math.LN2 - 0.693359375);

/** With k = the whole number nearest to x / ln 2 and the rest r, |r| <= ln(2) / 2: 2^k (1 + r + r^2 p(r)). */
function exp(x: Expression): Expression {
  return choose([x, "gt", float(88.8)], float(Infinity), expBelow(x));
}

/** Of x up to 88. */
function expBelow(x: Expression): Expression {
  const { k, first, second } = powerOfTwo(x);
  const r = sub(sub(x, mul(k, ln2High)), mul(k, ln2Low));
  const rest = mul(mul(r, r), polynomial(r, [0.49999994, 0.1666652, 0.041668404, 0.008368899, 0.0013814222]));
  const scaled = mul(mul(add(one, add(r, rest)), first), second);
  return choose([x, "lt", float(-104)], zero, scaled);
}

/**
 * x = 2^k m with m from sqrt(1/2) to sqrt(2); k from the exponent's bits. With f = m - 1 and s = f / (2 + f), log(m) =
 * 2 atanh(s). The order of the steps, which keeps the error below an ulp, is that of FreeBSD's logf.
 */
function log(x: Expression): Expression {
  // 2^23 times a subnormal number is normal.
  const small: readonly [Expression, "lt", Expression] = [x, "lt", float(2 ** -126)];
  const bits = bitsOf(choose(small, mul(x, float(2 ** 23)), x));
  const exponent = apply("shr", sub(bits, word(0x3f35_04f3)), word(23));
  const k = add(convert("f32", exponent), choose(small, float(-23), zero));
  const f = sub(bitsOf(sub(bits, apply("shl", exponent, word(23)))), one);
  const s = div(f, add(two, f));
  const z = mul(s, s);
  const series = mul(z, polynomial(z, [0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841]));
  const square = mul(float(0.5), mul(f, f));
  const low = add(mul(s, add(square, series)), mul(k, float(9.0580006145e-6)));
  const finite = sub(mul(k, float(0.69313812256)), sub(sub(square, low), f));
  const positive = choose([x, "lt", float(Infinity)], finite, x);
  return choose([x, "gt", zero], positive, choose([x, "eq", zero], float(-Infinity), float(NaN)));
}

/** Of |x|: below 0.625 an odd polynomial, from there on 1 - 2 / (exp(2 |x|) + 1). The sign is a bit. */
function tanh(x: Expression): Expression {
  const u = apply("abs", x);
  const square = mul(u, u);
  const series = polynomial(square, [-0.33333278, 0.13331331, -0.05373001, 0.020606176, -0.0056669768]);
  const small = add(u, mul(u, mul(square, series)));
  const large = sub(one, div(two, add(exp(add(u, u)), one)));
  const sign = apply("and", bitsOf(x), word(-(2 ** 31)));
  return bitsOf(apply("or", bitsOf(choose([u, "lt", float(0.625)], small, large)), sign));
}

/** Beyond it the function is 0 or 1 in float32, but for 2^-23. Here the quotient below is 1/2 in float32. */
const farthest = 5.28000020980835;

/**
 * 1/2 + x p(x^2) / q(x^2), with an error below 2^-26 of 1 before roundings. NaN passes the choices. Over all floats from
 * 1/8 to 16, gelu is at most 3.39 ulps of its operand off, at 3.62.
 */
function normalCdf(x: Expression): Expression {
  const below = choose([float(farthest), "lt", x], float(farthest), x);
  const u = choose([float(-farthest), "gt", below], float(-farthest), below);
  const square = mul(u, u);
  const p = polynomial(square, [0.39894223, 0.03410918, 0.004691818, 0.00017127415, 6.352734e-6, 2.244277e-8]);
  const q = polynomial(square, [1, 0.25216487, 0.02878969, 0.0018983345, 7.434884e-5, 1.1886177e-6]);
  const result = add(float(0.5), div(mul(u, p), q));
  return choose([zero, "gt", result], zero, result);
}

export const floatFunctions = {
  exp: { js: "Math.exp", c: "exp", inFloat: exp },
  /** exp of numbers up to 88. */
  expBelow: { js: "Math.exp", c: "exp", inFloat: expBelow },
  log: { js: "Math.log", c: "log", inFloat: log },
  tanh: { js: "Math.tanh", c: "tanh", inFloat: tanh },
  normalCdf: { js: "normalCdf", c: "normcdf", inFloat: normalCdf },
} as const satisfies Readonly<Record<string, LibraryFunction>>;
