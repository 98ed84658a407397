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
 *
 * An infinite bound means that there is none: `compare` counts such elements and does not compare them.
 */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { type Bounded, store } from "./value.ts";

/** What the oracle may assume about a back end. */
export interface Arithmetic {
  /** Contractions add in the blocks of numerics/sum-order.ts, not in an order that a library chooses. */
  readonly blocksContractions: boolean;
  /** amax and amin over devices propagate NaN. */
  readonly keepsNaN: boolean;
  /** A program by hand may leave out terms with a factor of 0, such as keys that a mask hides: 0 times NaN is NaN. */
  readonly skipsZeros?: boolean;
  /** Only values are asked for: no bounds, and sums of doubles that keep less than they could. */
  readonly valuesOnly?: boolean;
}

/**
 * The most additions that one of `terms` numbers takes part in if they are added in blocks of `first`, and the sums in
 * blocks of 64. Kernels on GPUs have other blocks, but no term takes part in more additions.
 */
export function blockRoundings(terms: number, first = 64): number {
  let [roundings, sums] = [0, terms];
  for (let block = first; sums > 1; block = 64) {
    roundings += Math.min(sums, block);
    sums = Math.ceil(sums / block);
  }
  return Math.min(roundings, Math.max(0, terms - 1));
}

/** Of a contraction over `terms` elements: the product and the additions after it. */
export function contractionRoundings(terms: number, dtype: DType, { blocksContractions }: Arithmetic): number {
  return blocksContractions ? 1 + blockRoundings(terms, dtype === "double" ? 128 : 256) : terms;
}

/** gamma(c) for the dtype's unit round-off; 0 for exact dtypes. */
export function gamma(roundings: number, dtype: DType): number {
  const product = roundings * dtypes[dtype].epsilon;
  return product < 1 ? product / (1 - product) : Infinity;
}

/** The relative error of `roundings` in the accumulator of a back end and of `own` in the oracle's double. */
export function accumulationError(roundings: number, own: number, dtype: DType): number {
  return gamma(roundings, accumulatorOf(dtype)) + (dtypes[dtype].family === "float" ? gamma(own, "double") : 0);
}

/** A float sum or product, accumulated term by term. */
export interface Accumulated {
  /** In double. */
  readonly exact: number;
  /** The value to which the roundings are relative. */
  readonly magnitude: number;
  /** The largest change of the result due to the operands' own errors. */
  readonly spread: number;
  /** The largest partial result of finite operands in any order. */
  readonly peak: number;
  /** The least one that is not 0, of a product. */
  readonly least: number;
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
  /** Below this the accumulator may become 0. */
  readonly vanishing: number;
}

export function storeAccumulated(dtype: DType, sum: Accumulated, limits: AccumulationLimits): Bounded {
  if (!Number.isFinite(sum.spread)) return store(dtype, sum.exact, Infinity);
  // NaN stays NaN in any order.
  if (!sum.finite && Number.isNaN(sum.exact)) return store(dtype, sum.exact, 0);
  if (sum.peak >= limits.overflow) return store(dtype, sum.exact, Infinity);
  // An infinite operand decides, unless another partial result becomes infinite, or 0, before they meet.
  if (!sum.finite) return store(dtype, sum.exact, sum.least > limits.vanishing ? 0 : Infinity);
  return store(dtype, sum.exact, limits.relative * sum.magnitude + sum.spread + limits.underflow);
}

/** A sum in double that keeps what each addition loses (Neumaier). It starts as -0, the neutral element of floats. */
export interface ExactSum {
  add(x: number): void;
  /** Adds `count` numbers from `start` on, `stride` apart. */
  addRun(numbers: Float64Array, start: number, stride: number, count: number): void;
  value(): number;
}

export function exactSum(): ExactSum {
  let [sum, lost] = [-0, 0];
  const addRun = (numbers: Float64Array, start: number, stride: number, count: number): void => {
    let [total, rest] = [sum, lost];
    for (let i = 0; i < count; i++) {
      const x = numbers[start + i * stride] ?? NaN;
      const next = total + x;
      rest += Math.abs(total) >= Math.abs(x) ? total - next + x : x - next + total;
      total = next;
    }
    [sum, lost] = [total, rest];
  };
  const single = new Float64Array(1);
  return {
    add: (x) => {
      single[0] = x;
      addRun(single, 0, 0, 1);
    },
    addRun,
    value: () => (lost === 0 || !Number.isFinite(sum) ? sum : sum + lost),
  };
}
