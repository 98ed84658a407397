/**
 * The largest error of a correct back end, defined once per op. The oracle computes in double and rounds once to the
 * output's dtype; a back end rounds more often. In the usual notation (Higham, "Accuracy and Stability of Numerical
 * Algorithms", chapter 3), u is the unit round-off of the back end's accumulator, and gamma(c) = c u / (1 - c u) bounds
 * the relative effect of c successive roundings:
 *
 *   |error| <= gamma(c) * magnitude + the effect of the operands' own errors
 *
 * The magnitude of a contraction is sum |a||b|, that of a sum is sum |x|. Storing an inexact result costs one rounding
 * to the dtype on either side. A reduction or contraction over a device axis may also round to the dtype when a device
 * stores its partial result, and once per hop over a link. Integers, comparisons and copies are exact.
 */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { type Bounded, store } from "./value.ts";

/** c of a contraction over K elements: one multiplication and the additions after it, plus one for a bias. */
export const contractionRoundings = {
  Matmul: (count: number): number => count,
  Linear: (count: number, hasBias: boolean): number => count + (hasBias ? 1 : 0),
} as const;

/** gamma(c) for the dtype's unit round-off; 0 for exact dtypes. */
export function gamma(roundings: number, dtype: DType): number {
  const product = roundings * dtypes[dtype].epsilon;
  return product < 1 ? product / (1 - product) : Infinity;
}

/** The relative error of c roundings in a back end's accumulator plus c roundings in the oracle's double. */
export function accumulationError(roundings: number, dtype: DType): number {
  return gamma(roundings, accumulatorOf[dtype]) + (dtypes[dtype].family === "float" ? gamma(roundings, "double") : 0);
}

/** A float sum or product, accumulated term by term. */
export interface Accumulated {
  /** In double. */
  readonly exact: number;
  /** The value to which the roundings are relative. */
  readonly magnitude: number;
  /** The largest change of the result due to the operands' own errors. */
  readonly spread: number;
  /** The largest absolute partial result in any order. */
  readonly peak: number;
  /** Whether all operands are finite numbers. */
  readonly finite: boolean;
}

export interface AccumulationLimits {
  /** The relative error of all roundings. */
  readonly relative: number;
  /** The largest error due to underflow. */
  readonly underflow: number;
  /** The value from which the accumulator overflows. */
  readonly overflow: number;
}

export function storeAccumulated(dtype: DType, sum: Accumulated, limits: AccumulationLimits): Bounded {
  if (!Number.isFinite(sum.spread)) return store(dtype, sum.exact, Infinity);
  // If an operand is infinite or NaN, the result is the same in any order.
  if (!sum.finite) return store(dtype, sum.exact, 0);
  if (sum.peak >= limits.overflow) return store(dtype, sum.exact, Infinity);
  return store(dtype, sum.exact, limits.relative * sum.magnitude + sum.spread + limits.underflow);
}
