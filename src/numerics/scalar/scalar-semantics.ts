/**
 * What every operation does to elements of every dtype, stated once. The oracle calls these expressions as functions
 * (scalar-functions.ts), kernel generators emit code from them.
 *
 * - float, half and bfloat16 compute in float32: an op rounds to float32, then once to its dtype. double computes in double.
 * - int wraps at 32 bits, int64 at 64. Integer division truncates toward zero; x / 0 is 0.
 * - Casts from float to integer truncate and saturate, NaN gives 0 (WebAssembly's trunc_sat); int64 to int wraps; to bool is x != 0.
 *   To half and bfloat16 every cast goes through float32.
 * - relu, amax and amin pass NaN on, as PyTorch's do; -0 is below 0, so that their results do not depend on an order. gelu is the exact form, in double and rounded once (normal-cdf.ts).
 * - Reductions of float, half and bfloat16 accumulate in float32, of double in double, in increasing index order from the
 *   identity, with one rounding to the dtype at the end; integers wrap. amax and amin of bool are `or` and `and`.
 * - `exp` is the engine's Math.exp, which is within one unit of the last place of a double.
 */
import type { DType } from "../dtype.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "./op-types.ts";
import {
  apply,
  choose,
  computeType,
  constant,
  convert,
  type Expression,
  operand,
  roundTo,
  type ScalarType,
} from "./expression.ts";
import type { Value } from "../tensor/storage.ts";

type Unary = (x: Expression) => Expression;
type Binary = (x: Expression, y: Expression) => Expression;

const unaryOps: { readonly [Op in UnaryOpType]: Unary } = {
  neg: (x) => apply("neg", x),
  abs: (x) => apply("abs", x),
  relu: (x) => apply("max", x, constant(x.type, 0)),
  gelu: (x) => {
    const wide = convert("f64", x);
    return convert(x.type, apply("mul", wide, apply("normalCdf", wide)));
  },
  exp: (x) => apply("exp", x),
};

const binaryOps: { readonly [Op in BinaryOpType]: Binary } = {
  add: (x, y) => apply("add", x, y),
  sub: (x, y) => apply("sub", x, y),
  mul: (x, y) => apply("mul", x, y),
  div: (x, y) => {
    const quotient = apply("div", x, y);
    if (x.type === "f32" || x.type === "f64") return quotient;
    const zero = constant(x.type, 0);
    return choose([y, "eq", zero], zero, quotient);
  },
};

interface Reduction {
  /** Neutral in every dtype: the sum of one -0 is -0. */
  readonly identity: { readonly [D in DType]: Value };
  readonly combine: Binary;
}

const reductions: { readonly [Op in ReductionOpType]: Reduction } = {
  sum: {
    identity: { double: -0, float: -0, half: -0, bfloat16: -0, int: 0, int64: 0n, bool: 0 },
    combine: binaryOps.add,
  },
  prod: {
    identity: { double: 1, float: 1, half: 1, bfloat16: 1, int: 1, int64: 1n, bool: 1 },
    combine: binaryOps.mul,
  },
  amax: {
    identity: {
      double: -Infinity,
      float: -Infinity,
      half: -Infinity,
      bfloat16: -Infinity,
      int: -(2 ** 31),
      int64: -(2n ** 63n),
      bool: 0,
    },
    combine: (x, y) => apply("max", x, y),
  },
  amin: {
    identity: {
      double: Infinity,
      float: Infinity,
      half: Infinity,
      bfloat16: Infinity,
      int: 2 ** 31 - 1,
      int64: 2n ** 63n - 1n,
      bool: 1,
    },
    combine: (x, y) => apply("min", x, y),
  },
};

/** Over operand 0, a value of `dtype`. gelu and exp are for floats only. */
export function unaryExpression(op: UnaryOpType, dtype: DType): Expression {
  return roundTo(dtype, unaryOps[op](operand(computeType[dtype], 0)));
}

/** Over operands 0 and 1 of `dtype`. */
export function binaryExpression(op: BinaryOpType, dtype: DType): Expression {
  const type = computeType[dtype];
  return roundTo(dtype, binaryOps[op](operand(type, 0), operand(type, 1)));
}

/** Over operand 0 of dtype `from`. */
export function castExpression(from: DType, to: DType): Expression {
  const x = operand(computeType[from], 0);
  if (from === to) return x;
  if (to === "bool") return choose([x, "ne", constant(x.type, 0)], constant("i32", 1), constant("i32", 0));
  const converted = convert(computeType[to], x);
  if (to !== "half" && to !== "bfloat16") return converted;
  return { kind: "round", type: "f32", to, operand: converted };
}

export interface ReductionSemantics {
  /** The accumulator's type. */
  readonly type: ScalarType;
  readonly identity: Value;
  /** The next accumulator from operand 0, the accumulator, and operand 1, an element. */
  readonly combine: Expression;
  /** The result from operand 0, the last accumulator. */
  readonly finish: Expression;
}

export function reductionSemantics(op: ReductionOpType, dtype: DType): ReductionSemantics {
  const type = computeType[dtype];
  const { identity, combine } = reductions[op];
  const last = operand(type, 0);
  return {
    type,
    identity: identity[dtype],
    combine: combine(operand(type, 0), operand(type, 1)),
    finish: dtype === "half" || dtype === "bfloat16" ? { kind: "round", type: "f32", to: dtype, operand: last } : last,
  };
}
