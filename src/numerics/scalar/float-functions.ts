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

/** From it on the quotient below is 1/2 in float32, and before it less: the function is 0 or 1, but for 2.6e-7. */
const farthest = 5.021668434143066;

/**
 * 1/2 + x p(x^2) / q(x^2). The errors before roundings are spread so that those of gelu, in ulps of its operand, are
 * least: 3.26 over all floats, at 3.41. NaN passes the choices.
 */
function normalCdf(x: Expression): Expression {
  const below = choose([float(farthest), "lt", x], float(farthest), x);
  const u = choose([float(-farthest), "gt", below], float(-farthest), below);
  const square = mul(u, u);
  const p = polynomial(square, [805039.5625, 97309.265625, 10928.689453125, 606.09228515625, 11.470641136169434]);
  const q = polynomial(square, [2017937.25, 580226.5, 73674.859375, 5278.95068359375, 218.5513458251953, 1]);
  return add(float(0.5), div(mul(u, p), q));
}

/** Added to a float32 of less than 2^22, it leaves the nearest whole number in the low bits. */
const wholeRounder = float(1.5 * 2 ** 23);

/** 2 ln 2 in two terms. The first has 17 bits, so that its products with j are exact. */
const ln4High = float(1.38629150390625);
const ln4Low = float(2 * Math.LN2 - 1.38629150390625);

/**
 * x / (1 + exp(-x)), with x = 2 j ln 2 + w and exp(-w) = (a - w) / (a + w), a = w coth(w / 2) by a polynomial in w^2. Both
 * sides of the quotient are multiplied by 2^j, so that neither overflows or is subnormal where the result is not; the
 * exponents' bits are added, because processors add words beside floats. From 17.4 on the result is x. From -175.6 down
 * 2^j is 0, and with it the result, but for NaN of -Infinity.
 */
export function siluInFloat(x: Expression): Expression {
  const below = choose([float(100), "lt", x], float(100), x);
  const u = choose([float(-175.6), "gt", below], float(-175.6), below);
  const turned = add(mul(u, float(Math.LOG2E / 2)), wholeRounder);
  const j = sub(turned, wholeRounder);
  const exponent = apply("shl", bitsOf(turned), word(23));
  const w = sub(sub(u, mul(j, ln4High)), mul(j, ln4Low));
  const a = polynomial(mul(w, w), [2.0000007152557373, 0.16665400564670563, -0.002723624696955085]);
  const divisor = add(a, w);
  const raised = bitsOf(add(bitsOf(divisor), exponent));
  const lowered = bitsOf(sub(bitsOf(sub(a, w)), exponent));
  const power = bitsOf(add(exponent, word(127 * 2 ** 23)));
  return mul(mul(div(divisor, add(raised, lowered)), x), power);
}

export const floatFunctions = {
  exp: { js: "Math.exp", c: "exp", inFloat: exp },
  /** exp of numbers up to 88. */
  expBelow: { js: "Math.exp", c: "exp", inFloat: expBelow },
  log: { js: "Math.log", c: "log", inFloat: log },
  tanh: { js: "Math.tanh", c: "tanh", inFloat: tanh },
  normalCdf: { js: "normalCdf", c: "normcdf", inFloat: normalCdf },
} as const satisfies Readonly<Record<string, LibraryFunction>>;
