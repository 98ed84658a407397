/** How a float sum or product that was accumulated term by term is stored, with the error of a back end's accumulator. */
import type { DType } from "../numerics/dtype.ts";
import { type Bounded, store } from "./value.ts";

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
