/**
 * The error that a correct back end may make, stated once per op. The oracle computes in double and rounds once to the
 * output's dtype; a back end rounds more often. In the usual notation (Higham, "Accuracy and Stability of Numerical
 * Algorithms", chapter 3), u is the unit round-off of a back end's accumulator and gamma(c) = c u / (1 - c u) bounds the
 * relative effect of c roundings one after another:
 *
 *   |error| <= gamma(c) * magnitude + what the operands' own errors become
 *
 * where magnitude is sum |a||b| of a contraction and sum |x| of a sum. Storing a result that is not exact costs
 * one rounding to the dtype on either side. A reduction or contraction over a device axis may also round to the dtype where a device
 * stores its own part, and once per hop on the wire.
 * Integers, comparisons and copies are exact.
 */
import { accumulatorOf } from "../numerics/accumulator.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";

/** Half the spacing of the smallest numbers: what rounding costs where a dtype underflows. */
export const smallestRounding: { readonly [K in DType]: number } = {
  double: Number.MIN_VALUE,
  float: 2 ** -150,
  half: 2 ** -25,
  bfloat16: 2 ** -134,
  int: 0,
  int64: 0,
  bool: 0,
};

/** From here on a number rounds to infinity. */
export const overflowThreshold: { readonly [K in DType]: number } = {
  double: Infinity,
  float: 2 ** 128 - 2 ** 103,
  half: 65520,
  bfloat16: 2 ** 128 - 2 ** 119,
  int: Infinity,
  int64: Infinity,
  bool: Infinity,
};

/** c of a contraction over K elements: the product and the additions after it; with a bias one more. */
export const contractionRoundings = {
  Matmul: (count: number): number => count,
  Linear: (count: number, hasBias: boolean): number => count + (hasBias ? 1 : 0),
} as const;

/** gamma(c) for unit round-off u; 0 for the exact dtypes. */
export function gamma(roundings: number, dtype: DType): number {
  const product = roundings * dtypes[dtype].epsilon;
  return product < 1 ? product / (1 - product) : Infinity;
}

/** The relative error of c roundings in a back end's accumulator, and of as many in the oracle's double. */
export function accumulationError(roundings: number, dtype: DType): number {
  return gamma(roundings, accumulatorOf[dtype]) + (dtypes[dtype].family === "float" ? gamma(roundings, "double") : 0);
}
