/** The rules of elementwise functions and reductions: one row per function. */
import {
  add,
  cast,
  cos,
  cosh,
  div,
  eq,
  exp,
  expand,
  ge,
  gt,
  le,
  log,
  logicalAnd,
  lt,
  mul,
  neg,
  normalCdf,
  pow,
  prod,
  rsqrt,
  sigmoid,
  sign,
  sin,
  sinh,
  sub,
  sum,
  tanh,
  trunc,
  where,
} from "../api/ops.ts";
import { keepAxes } from "../api/ops/compositions/compose.ts";
import type { TensorView } from "../api/tensor-view.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../ops/op.ts";
import { invariant } from "../../support/invariant.ts";
import { nonZero } from "./vjp.ts";

/** The operand and the result of a function, in the dtype in which the rule computes: 16-bit floats in float. */
export interface Applied {
  readonly x: TensorView;
  readonly y: TensorView;
}

/** The cotangent of x, from that of y = f(x). Null if f has no derivative, or 0 wherever it has one. */
export type UnaryVjp = ((g: TensorView, of: Applied) => TensorView) | null;

export const unaryVjps: { readonly [K in UnaryOpType]: UnaryVjp } = {
  neg: (g) => neg(g),
  abs: (g, { x }) => mul(g, sign(x)),
  sign: null,
  logicalNot: null,
  floor: null,
  ceil: null,
  trunc: null,
  round: null,
  relu: (g, { y }) => where(le(y, 0), 0, g),
  gelu: (g, { x }) => mul(g, add(normalCdf(x), mul(x, normalDensity(x)))),
  geluTanh: (g, { x }) => mul(g, slopeOfGeluTanh(x)),
  normalCdf: (g, { x }) => mul(g, normalDensity(x)),
  erf: (g, { x }) => mul(g, mul(2 / Math.sqrt(Math.PI), exp(neg(mul(x, x))))),
  sigmoid: (g, { y }) => mul(g, mul(y, sub(1, y))),
  silu: (g, { x }) => {
    const s = sigmoid(x);
    return mul(g, mul(s, add(1, mul(x, sub(1, s)))));
  },
  softplus: (g, { x }) => mul(g, sigmoid(x)),
  exp: (g, { y }) => mul(g, y),
  exp2: (g, { y }) => mul(g, mul(y, Math.LN2)),
  expm1: (g, { y }) => mul(g, add(y, 1)),
  log: (g, { x }) => div(g, x),
  log2: (g, { x }) => div(g, mul(x, Math.LN2)),
  log1p: (g, { x }) => div(g, add(x, 1)),
  sin: (g, { x }) => mul(g, cos(x)),
  cos: (g, { x }) => neg(mul(g, sin(x))),
  tan: (g, { y }) => mul(g, add(1, mul(y, y))),
  asin: (g, { x }) => mul(g, rsqrt(sub(1, mul(x, x)))),
  acos: (g, { x }) => neg(mul(g, rsqrt(sub(1, mul(x, x))))),
  atan: (g, { x }) => div(g, add(1, mul(x, x))),
  sinh: (g, { x }) => mul(g, cosh(x)),
  cosh: (g, { x }) => mul(g, sinh(x)),
  tanh: (g, { y }) => mul(g, sub(1, mul(y, y))),
  sqrt: (g, { y }) => div(mul(g, 0.5), y),
  // In this order no product is larger than the result or g, so none overflows alone.
  rsqrt: (g, { y }) => mul(mul(mul(mul(g, -0.5), y), y), y),
};

function normalDensity(x: TensorView): TensorView {
  return mul(1 / Math.sqrt(2 * Math.PI), exp(mul(mul(x, x), -0.5)));
}

/** With u = sqrt(2 / pi) (x + 0.044715 x^3) and t = tanh(u): (1 + t) / 2 + x (1 - t^2) u' / 2. */
function slopeOfGeluTanh(x: TensorView): TensorView {
  const scale = Math.sqrt(2 / Math.PI);
  const square = mul(x, x);
  const t = tanh(mul(mul(x, scale), add(1, mul(square, 0.044715))));
  const slope = mul(scale / 2, add(1, mul(square, 3 * 0.044715)));
  return add(mul(0.5, add(1, t)), mul(mul(x, sub(1, mul(t, t))), slope));
}

export type FunctionOperand = TensorView | number;

/** The cotangent of one operand of y = f(a, b), in the shape of y. Null as in `UnaryVjp`. */
export type BinaryVjp = ((g: TensorView, a: FunctionOperand, b: FunctionOperand, y: TensorView) => TensorView) | null;

const noRules = [null, null] as const;

/** The rules of both operands. */
export const binaryVjps: { readonly [K in BinaryOpType]: readonly [BinaryVjp, BinaryVjp] } = {
  add: [(g) => g, (g) => g],
  sub: [(g) => g, (g) => neg(g)],
  mul: [(g, _, b) => mul(g, b), (g, a) => mul(g, a)],
  div: [(g, _, b) => div(g, b), (g, _, b, y) => neg(mul(g, div(y, b)))],
  atan2: [(g, a, b) => mul(g, div(b, squares(a, b))), (g, a, b) => neg(mul(g, div(a, squares(a, b))))],
  fmod: [(g) => g, (g, a, b) => neg(mul(g, trunc(typeof a === "number" ? div(a, tensorOf(b)) : div(a, b))))],
  // b a^(b-1), and 0 where b is 0; y log(a), and 0 where a is 0 and b is not negative.
  pow: [
    (g, a, b) => mul(g, typeof b === "number" ? slopeOfPower(a, b) : where(eq(b, 0), 0, mul(pow(a, sub(b, 1)), b))),
    (g, a, b, y) => {
      if (a === 0) return mul(g, where(ge(b, 0), 0, mul(y, -Infinity)));
      if (typeof a === "number") return mul(g, mul(y, Math.log(a)));
      return mul(g, where(logicalAnd(eq(a, 0), ge(b, 0)), 0, mul(y, log(a))));
    },
  ],
  maximum: [(g, a, b) => where(lt(a, b), 0, shared(g, a, b)), (g, a, b) => where(gt(a, b), 0, shared(g, a, b))],
  minimum: [(g, a, b) => where(gt(a, b), 0, shared(g, a, b)), (g, a, b) => where(lt(a, b), 0, shared(g, a, b))],
  eq: noRules,
  ne: noRules,
  lt: noRules,
  le: noRules,
  gt: noRules,
  ge: noRules,
  logicalAnd: noRules,
  logicalOr: noRules,
  bitAnd: noRules,
  bitOr: noRules,
  bitXor: noRules,
  shiftLeft: noRules,
  shiftRight: noRules,
  remainder: noRules,
};

// One operand is a tensor.

function squares(a: FunctionOperand, b: FunctionOperand): TensorView {
  const [p, q] = [typeof a === "number" ? a * a : mul(a, a), typeof b === "number" ? b * b : mul(b, b)];
  return typeof p === "number" ? add(p, tensorOf(q)) : add(p, q);
}

function tensorOf(operand: FunctionOperand): TensorView {
  invariant(typeof operand !== "number", "one operand of a function is a tensor");
  return operand;
}

function slopeOfPower(a: FunctionOperand, b: number): FunctionOperand {
  return b === 0 ? 0 : mul(pow(a, b - 1), b);
}

/** Half of g where both operands are equal. */
function shared(g: TensorView, a: FunctionOperand, b: FunctionOperand): TensorView {
  return where(eq(a, b), mul(g, 0.5), g);
}

/** As `UnaryVjp`, for the reduction of x over `axes`. */
export type ReductionVjp =
  ((g: TensorView, x: TensorView, y: TensorView, axes: readonly number[]) => TensorView) | null;

export const reductionVjps: { readonly [K in ReductionOpType]: ReductionVjp } = {
  sum: (g, x, _, axes) => expand(keepAxes(g, axes, x), x.extents),
  prod: productVjp,
  amax: extremumVjp,
  amin: extremumVjp,
};

/** The product of all other elements: of those that are not 0, if no other element is 0. */
function productVjp(g: TensorView, x: TensorView, _: TensorView, axes: readonly number[]): TensorView {
  const zero = sub(1, nonZero(x));
  const kept = add(x, zero);
  const zeros = keepAxes(sum(zero, axes), axes, x);
  const others = sub(1, nonZero(sub(zeros, zero)));
  return mul(div(keepAxes(mul(g, prod(kept, axes)), axes, x), kept), others);
}

/** Elements that are equal to the extremum share its cotangent. None is equal to NaN, and all get NaN. */
function extremumVjp(g: TensorView, x: TensorView, y: TensorView, axes: readonly number[]): TensorView {
  const extremes = cast(eq(x, keepAxes(y, axes, x)), x.dtype);
  return mul(extremes, keepAxes(div(g, sum(extremes, axes)), axes, x));
}
