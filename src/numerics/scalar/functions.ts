/** Functions that generated JavaScript calls and that `Math` lacks or defines otherwise than C. All are in double. */
import { normalCdf } from "./normal-cdf.ts";

/** The nearest whole number, halves to even. -0 and numbers that round to it keep their sign. */
export function nearest(x: number): number {
  // From 2^52 on, every double is whole. Below, adding 2^52 leaves no bits for a fraction.
  if (!(Math.abs(x) < 2 ** 52)) return x;
  const shift = x < 0 ? -(2 ** 52) : 2 ** 52;
  const rounded = x + shift - shift;
  return rounded === 0 ? 0 * x : rounded;
}

export function exp2(x: number): number {
  return 2 ** x;
}

/** As in C: 1 to any power is 1, also to NaN, and -1 to an infinite power is 1. */
export function pow(x: number, y: number): number {
  if (x === 1 || (x === -1 && Math.abs(y) === Infinity)) return 1;
  return x ** y;
}

/**
 * The error function. Below 1 its Taylor series, the sum of (-x^2)^n / (n! (2 n + 1)) times 2 x / sqrt(pi), from the
 * innermost parenthesis; from 1 on 1 - 2 Phi(-x sqrt(2)).
 */
export function erf(x: number): number {
  const u = Math.abs(x);
  if (u >= 1) {
    const rest = 2 * normalCdf(-u * Math.SQRT2);
    return x < 0 ? rest - 1 : 1 - rest;
  }
  const square = x * x;
  let sum = 0;
  for (let n = 20; n >= 0; n--) sum = 1 / (2 * n + 1) - (square / (n + 1)) * sum;
  return (2 / Math.sqrt(Math.PI)) * x * sum;
}
