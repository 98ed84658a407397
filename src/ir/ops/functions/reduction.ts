/**
 * The functions that reductions and reducing collectives combine elements with, one row each. Reductions of float, half and
 * bfloat16 accumulate in float32, of double in double, in increasing index order from the identity, with one rounding to the
 * dtype at the end; integers wrap.
 */
import type { DType } from "../../../numerics/dtype.ts";
import { apply, type Expression } from "../../../numerics/scalar/expression.ts";
import type { Value } from "../../../numerics/tensor/storage.ts";

export interface ReductionFunction {
  /** Whether it takes bool, too. */
  readonly operand: "number" | "any";
  /** Neutral in every dtype: the sum of one -0 is -0. */
  readonly identity: { readonly [D in DType]: Value };
  /** The next accumulator from the last one and an element, both of the compute type. */
  readonly combine: (sum: Expression, x: Expression) => Expression;
  /** How roundings add up. null: the result is one of the elements, and exact. */
  readonly accumulates: "sum" | "product" | null;
  /** The name in dumps: `op = add`. */
  readonly printed: string;
  /** Other names in nvFuser's dumps. */
  readonly alsoRead: readonly string[];
}

const rows = {
  sum: {
    operand: "number",
    identity: { double: -0, float: -0, half: -0, bfloat16: -0, int: 0, int64: 0n, bool: 0 },
    combine: (sum, x) => apply("add", sum, x),
    accumulates: "sum",
    printed: "add",
    alsoRead: [],
  },
  prod: {
    operand: "number",
    identity: { double: 1, float: 1, half: 1, bfloat16: 1, int: 1, int64: 1n, bool: 1 },
    combine: (sum, x) => apply("mul", sum, x),
    accumulates: "product",
    printed: "mul",
    alsoRead: [],
  },
  /** NaN if any element is, as in PyTorch. -0 is below 0, so that the order of the elements does not matter. `or` of bool. */
  amax: {
    operand: "any",
    identity: {
      double: -Infinity,
      float: -Infinity,
      half: -Infinity,
      bfloat16: -Infinity,
      int: -(2 ** 31),
      int64: -(2n ** 63n),
      bool: 0,
    },
    combine: (most, x) => apply("max", most, x),
    accumulates: null,
    printed: "fmax",
    // Of integers, and of floats where nvFuser skips NaN.
    alsoRead: ["max"],
  },
  /** As `amax`. `and` of bool. */
  amin: {
    operand: "any",
    identity: {
      double: Infinity,
      float: Infinity,
      half: Infinity,
      bfloat16: Infinity,
      int: 2 ** 31 - 1,
      int64: 2n ** 63n - 1n,
      bool: 1,
    },
    combine: (least, x) => apply("min", least, x),
    accumulates: null,
    printed: "fmin",
    alsoRead: ["min"],
  },
} as const satisfies Readonly<Record<string, ReductionFunction>>;

export type ReductionOpType = keyof typeof rows;

export const reductionFunctions: { readonly [K in ReductionOpType]: ReductionFunction } = rows;
