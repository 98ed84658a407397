/** Steps of definitions of functions (float-functions.ts, wide-functions.ts). */
import { apply, bitsOf, constant, type Expression } from "./expression.ts";

export const add = (x: Expression, y: Expression): Expression => apply("add", x, y);
export const sub = (x: Expression, y: Expression): Expression => apply("sub", x, y);
export const mul = (x: Expression, y: Expression): Expression => apply("mul", x, y);
export const div = (x: Expression, y: Expression): Expression => apply("div", x, y);
export const float = (value: number): Expression => constant("f32", value);
export const double = (value: number): Expression => constant("f64", value);
export const word = (value: number): Expression => constant("i32", value);

/** The sum of coefficients[i] x^i, from the innermost parenthesis. If the last coefficient is 1, nothing is multiplied by it. */
export function polynomial(x: Expression, coefficients: readonly number[]): Expression {
  const [last = 0, next, ...others] = coefficients.toReversed();
  const innermost = constant(x.type, last);
  if (next === undefined) return innermost;
  const first = add(last === 1 ? x : mul(innermost, x), constant(x.type, next));
  return others.reduce((sum, each) => add(mul(sum, x), constant(x.type, each)), first);
}

/** Added to a float32 of less than 2^22, it leaves the nearest whole number k, as k + 254 in the low bits. */
const rounder = float(1.5 * 2 ** 23 + 254);

/** The whole number next to x log2(e) for |x| <= 150, and 2^k as the product of two powers that are normal numbers. */
export interface PowerOfTwo {
  readonly k: Expression;
  readonly first: Expression;
  readonly second: Expression;
}

/** All are float32, as x is. */
export function powerOfTwo(x: Expression): PowerOfTwo {
  const turned = add(mul(x, float(Math.LOG2E)), rounder);
  const bits = bitsOf(turned);
  const half = apply("shr", bits, word(1));
  const power = (exponent: Expression): Expression => bitsOf(apply("shl", exponent, word(23)));
  return { k: sub(turned, rounder), first: power(half), second: power(apply("sub", bits, half)) };
}
