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
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { type Bounded, store } from "./value.ts";

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

/** A float sum or product that was accumulated term by term. */
export interface Accumulated {
  /** In double. */
  readonly exact: number;
  /** What the roundings are relative to. */
  readonly magnitude: number;
  /** How far the operands' own errors move the result. */
  readonly spread: number;
  /** The largest partial result in any order. */
  readonly peak: number;
  /** Whether all operands are finite numbers. */
  readonly finite: boolean;
}

export interface AccumulationLimits {
  /** The relative error of all roundings. */
  readonly relative: number;
  /** What underflow may cost. */
  readonly underflow: number;
  /** Where the accumulator overflows. */
  readonly overflow: number;
}

export function storeAccumulated(dtype: DType, sum: Accumulated, limits: AccumulationLimits): Bounded {
  if (!Number.isFinite(sum.spread)) return store(dtype, sum.exact, Infinity);
  // An operand that is infinite or NaN decides the result in any order.
  if (!sum.finite) return store(dtype, sum.exact, 0);
  if (sum.peak >= limits.overflow) return store(dtype, sum.exact, Infinity);
  return store(dtype, sum.exact, limits.relative * sum.magnitude + sum.spread + limits.underflow);
}
