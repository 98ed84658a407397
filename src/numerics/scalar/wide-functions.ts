/**
 * Library functions in primitives of double, as steps of functions whose result is rounded to float32
 * (rounded-functions.ts has some). Their errors of about 2^-30 change few of those roundings. WebAssembly SIMD computes
 * them, with the bits of generated JavaScript; CUDA calls its own functions of float.
 *
 * Coefficients are least-squares fits, reweighted until the largest relative error is least.
 */
import { apply, choose, convert, type Expression, type LibraryFunction } from "./expression.ts";
import { add, div, double, mul, polynomial, powerOfTwo, sub } from "./steps.ts";

const zero = double(0);
const one = double(1);
const two = double(2);

/** As in float-functions.ts, for x up to 88; 0 below -150. The relative error is below 2^-33. */
export function exp(x: Expression): Expression {
  const { k, first, second } = powerOfTwo(convert("f32", x));
  const r = sub(x, mul(convert("f64", k), double(Math.LN2)));
  const rest = add(one, mul(r, expm1Quotient(r)));
  const scaled = mul(mul(rest, convert("f64", first)), convert("f64", second));
  return choose([x, "lt", double(-150)], zero, scaled);
}

/** (exp(x) - 1) / x of |x| <= ln(2) / 2, with a relative error below 2^-33. */
export function expm1Quotient(x: Expression): Expression {
  const series = polynomial(
    x,
    [
      0.5000000068701133, 0.16666665856472057, 0.041666291186808035, 0.008333498791860322, 0.001394494263865822,
      0.00019790062085227965,
    ],
  );
  return add(one, mul(x, series));
}

/** Of x from -0.5 to 1. 2 atanh(s) with s = x / (2 + x), |s| <= 1 / 3, by its Taylor series. */
export function log1p(x: Expression): Expression {
  const s = div(x, add(two, x));
  const terms = Array.from({ length: 10 }, (_, n) => 2 / (2 * n + 1));
  return mul(s, polynomial(mul(s, s), terms));
}

/** With u = |x|, the lower tail is exp(-u^2 / 2) t p(t), t = 1 / (1 + u / 4). The relative error is below 2^-30. */
function normalCdf(x: Expression): Expression {
  const tail = normalTail(apply("abs", x));
  return choose([x, "lt", zero], tail, sub(one, tail));
}

/** Of u >= 0: what normalCdf is of -u. */
export function normalTail(u: Expression): Expression {
  const t = div(one, add(one, mul(double(0.25), u)));
  const series = polynomial(
    sub(t, double(0.625)),
    [
      0.2336530309533244, 0.42016858456481493, 0.5506197560555194, 0.5006650352757291, 0.2629261814335314,
      0.0032585512441596722, -0.09297750266877544, -0.028617062379659847, 0.035581498792331724, 0.016560681572228474,
      -0.014769829700779084, -0.00821060285081521,
    ],
  );
  return mul(exp(mul(double(-0.5), mul(u, u))), mul(t, series));
}

export const wideFunctions = {
  exp: { js: "Math.exp", c: "exp", inDouble: exp },
  log1p: { js: "Math.log1p", c: "log1p", inDouble: log1p },
  normalCdf: { js: "normalCdf", c: "normcdf", inDouble: normalCdf },
} as const satisfies Readonly<Record<string, LibraryFunction>>;
