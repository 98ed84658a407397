/** What reductions and reducing collectives apply to elements. */
import type { ReductionOpType } from "../../ir/ops/op.ts";

export interface ReductionDefinition {
  readonly float: (x: number, y: number) => number;
  readonly integer: (x: bigint, y: bigint) => bigint;
  /** How roundings accumulate. null if the result is one of the elements, and exact. */
  readonly accumulates: "sum" | "product" | null;
}

/** Of bool, amax is `or` and amin `and`. */
export const reductionDefinitions: { readonly [Op in ReductionOpType]: ReductionDefinition } = {
  sum: { float: (x, y) => x + y, integer: (x, y) => x + y, accumulates: "sum" },
  prod: { float: (x, y) => x * y, integer: (x, y) => x * y, accumulates: "product" },
  /** NaN if either is; -0 is below 0. */
  amax: { float: (x, y) => extremum(x, y, x > y, 0), integer: (x, y) => (x > y ? x : y), accumulates: null },
  amin: { float: (x, y) => extremum(x, y, x < y, -0), integer: (x, y) => (x < y ? x : y), accumulates: null },
};

export function extremum(x: number, y: number, isFirst: boolean, zero: number): number {
  if (Number.isNaN(x) || Number.isNaN(y)) return NaN;
  if (x === 0 && y === 0) return Object.is(x, zero) ? x : y;
  return isFirst ? x : y;
}
