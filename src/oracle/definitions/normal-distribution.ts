/** Functions that JavaScript lacks, from their series. */

/**
 * Phi(x), to 2.5 ulps. For u = |x| >= 0.7 the tail is the density divided by Laplace's continued fraction u + 1/(u + 2/(u + 3/(u +
 * ..))), of which double needs about 350 / u^2 terms. Below, it is 1/2 minus the density times u + u^3/3 + u^5/(3 5) +
 * ..
 */
export function normalDistribution(x: number): number {
  if (Number.isNaN(x)) return NaN;
  const u = Math.abs(x);
  if (u > 39) return x < 0 ? 0 : 1;
  const density = Math.exp((-u * u) / 2) / Math.sqrt(2 * Math.PI);
  let tail: number;
  if (u >= 0.7) {
    let fraction = u;
    for (let term = Math.ceil(40 + 400 / (u * u)); term > 0; term--) fraction = u + term / fraction;
    tail = density / fraction;
  } else {
    let [term, sum] = [u, 0];
    for (let odd = 3; sum + term !== sum; odd += 2) {
      sum += term;
      term *= (u * u) / odd;
    }
    tail = 0.5 - density * sum;
  }
  return x < 0 ? tail : 1 - tail;
}

/** For |x| < 1: 2 x / sqrt(pi) exp(-x^2) (1 + 2 x^2 / 3 (1 + 2 x^2 / 5 (1 + ..))). Beyond, from the tail of Phi. */
export function errorFunction(x: number): number {
  const u = Math.abs(x);
  if (!(u < 1)) return Math.sign(x) * (1 - 2 * normalDistribution(-u * Math.SQRT2));
  let sum = 1;
  for (let odd = 61; odd > 1; odd -= 2) sum = 1 + ((2 * x * x) / odd) * sum;
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum * x;
}
