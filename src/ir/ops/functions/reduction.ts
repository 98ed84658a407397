/**
 * The functions that reductions and reducing collectives apply to elements, one row each. Reductions accumulate float,
 * half and bfloat16 in float32 and double in double, in the order of numerics/sum-order.ts. They round once, at the
 * end. Integers wrap.
 */
import { type DType, dtypes, rangeOf } from "../../../numerics/dtype.ts";
import { apply, type Expression } from "../../../numerics/scalar/expression.ts";
import type { Value } from "../../../numerics/tensor/host-tensor.ts";

export interface ReductionFunction {
  /** `any` includes bool. */
  readonly operand: "number" | "any";
  /** The neutral element. For float sums it is -0, so that the sum of one -0 is -0. */
  readonly identity: (dtype: DType) => Value;
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
    identity: (dtype) => (dtypes[dtype].family === "float" ? -0 : whole(dtype, 0)),
    combine: (sum, x) => apply("add", sum, x),
    rounds: true,
    printed: "add",
    alsoRead: [],
  },
  prod: {
    operand: "number",
    identity: (dtype) => whole(dtype, 1),
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
    identity: (dtype) => rangeOf(dtype)[0],
    combine: (most, x) => apply("max", most, x),
    rounds: false,
    printed: "fmax",
    // nvFuser prints this for integers, and for floats whose NaNs it skips.
    alsoRead: ["max"],
  },
  /** As `amax`. For bool: logical and. */
  amin: {
    operand: "any",
    identity: (dtype) => rangeOf(dtype)[1],
    combine: (least, x) => apply("min", least, x),
    rounds: false,
    printed: "fmin",
    alsoRead: ["min"],
  },
} as const satisfies Readonly<Record<string, ReductionFunction>>;

function whole(dtype: DType, value: number): Value {
  return dtypes[dtype].type === "i64" ? BigInt(value) : value;
}

export type ReductionOpType = keyof typeof rows;

export const reductionFunctions: { readonly [K in ReductionOpType]: ReductionFunction } = rows;
