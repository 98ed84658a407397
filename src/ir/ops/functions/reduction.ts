/**
 * The functions that reductions and reducing collectives apply to elements, one row each. Reductions accumulate float,
 * half and bfloat16 in float32 and double in double, in the order of numerics/sum-order.ts. They round once, at the
 * end. Integers wrap.
 */
import type { DType } from "../../../numerics/dtype.ts";
import { apply, type Expression } from "../../../numerics/scalar/expression.ts";
import type { Value } from "../../../numerics/tensor/storage.ts";

export interface ReductionFunction {
  /** `any` includes bool. */
  readonly operand: "number" | "any";
  /** The neutral element. For float sums it is -0, so that the sum of one -0 is -0. */
  readonly identity: { readonly [D in DType]: Value };
  /** The next accumulator from the accumulator and an element, both of the compute type. */
  readonly combine: (sum: Expression, x: Expression) => Expression;
  /** Whether combining floats rounds, so that their order matters. */
  readonly rounds: boolean;
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
    rounds: true,
    printed: "add",
    alsoRead: [],
  },
  prod: {
    operand: "number",
    identity: { double: 1, float: 1, half: 1, bfloat16: 1, int: 1, int64: 1n, bool: 1 },
    combine: (sum, x) => apply("mul", sum, x),
    rounds: true,
    printed: "mul",
    alsoRead: [],
  },
  /**
   * NaN if any element is NaN, as in PyTorch. -0 is less than 0, so the order of elements does not matter. For bool:
   * logical or.
   */
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
    rounds: false,
    printed: "fmax",
    // nvFuser prints this for integers, and for floats whose NaNs it skips.
    alsoRead: ["max"],
  },
  /** As `amax`. For bool: logical and. */
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
    rounds: false,
    printed: "fmin",
    alsoRead: ["min"],
  },
} as const satisfies Readonly<Record<string, ReductionFunction>>;

export type ReductionOpType = keyof typeof rows;

export const reductionFunctions: { readonly [K in ReductionOpType]: ReductionFunction } = rows;
