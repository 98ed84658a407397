/** Elementwise functions of one tensor. */
import { requireOneOf } from "../../../diagnostics/arguments.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { unaryFunctions } from "../../ops/functions/unary.ts";
import type { UnaryOpType } from "../../ops/op.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf, castTo } from "./apply.ts";
import { div } from "./elementwise.ts";

/** Float functions first cast integers to float, as PyTorch does. */
function unary(op: UnaryOpType, tensor: TensorView, place = callOf(op, [tensor])): TensorView {
  const casts = unaryFunctions[op].operand === "float" && dtypes[tensor.dtype].family === "integer";
  const operand = casts ? castTo(tensor, "float", place) : tensor;
  return apply({ kind: "Unary", op }, [operand], place);
}

/** -x. Throws `dtype-mismatch` for bool. */
export function neg(tensor: TensorView): TensorView {
  return unary("neg", tensor);
}

/** |x|. Throws `dtype-mismatch` for bool. */
export function abs(tensor: TensorView): TensorView {
  return unary("abs", tensor);
}

/** The larger of 0 and x; NaN stays NaN. Throws `dtype-mismatch` for bool. */
export function relu(tensor: TensorView): TensorView {
  return unary("relu", tensor);
}

/** -1, 0 or 1; NaN stays NaN. Throws `dtype-mismatch` for bool. */
export function sign(tensor: TensorView): TensorView {
  return unary("sign", tensor);
}

/** `!x` of bool. Throws `dtype-mismatch` for other dtypes. */
export function logicalNot(tensor: TensorView): TensorView {
  return unary("logicalNot", tensor);
}

/** The largest whole number that is not above x. Integers become float. Throws `dtype-mismatch` for bool. */
export function floor(tensor: TensorView): TensorView {
  return unary("floor", tensor);
}

/** The smallest whole number that is not below x. Integers become float. Throws `dtype-mismatch` for bool. */
export function ceil(tensor: TensorView): TensorView {
  return unary("ceil", tensor);
}

/** x without its fraction. Integers become float. Throws `dtype-mismatch` for bool. */
export function trunc(tensor: TensorView): TensorView {
  return unary("trunc", tensor);
}

/** The nearest whole number; halves go to the even one. Integers become float. Throws `dtype-mismatch` for bool. */
export function round(tensor: TensorView): TensorView {
  return unary("round", tensor);
}

/** The square root; NaN for negative numbers. Integers become float. Throws `dtype-mismatch` for bool. */
export function sqrt(tensor: TensorView): TensorView {
  return unary("sqrt", tensor);
}

/** One over the square root; NaN for negative numbers. Integers become float. Throws `dtype-mismatch` for bool. */
export function rsqrt(tensor: TensorView): TensorView {
  return unary("rsqrt", tensor);
}

/** 1 / x. Integers become float. Throws `dtype-mismatch` for bool. */
export function reciprocal(tensor: TensorView): TensorView {
  const place = callOf("reciprocal", [tensor]);
  return div(1, dtypes[tensor.dtype].family === "integer" ? castTo(tensor, "float", place) : tensor);
}

/** e to the power of x. Integers become float. Throws `dtype-mismatch` for bool. */
export function exp(tensor: TensorView): TensorView {
  return unary("exp", tensor);
}

/** 2 to the power of x. Integers become float. Throws `dtype-mismatch` for bool. */
export function exp2(tensor: TensorView): TensorView {
  return unary("exp2", tensor);
}

/** exp(x) - 1, accurate near 0. Integers become float. Throws `dtype-mismatch` for bool. */
export function expm1(tensor: TensorView): TensorView {
  return unary("expm1", tensor);
}

/** The natural logarithm: -Infinity at 0, NaN below. Integers become float. Throws `dtype-mismatch` for bool. */
export function log(tensor: TensorView): TensorView {
  return unary("log", tensor);
}

/** The logarithm to base 2: -Infinity at 0, NaN below. Integers become float. Throws `dtype-mismatch` for bool. */
export function log2(tensor: TensorView): TensorView {
  return unary("log2", tensor);
}

/** log(1 + x), accurate near 0. Integers become float. Throws `dtype-mismatch` for bool. */
export function log1p(tensor: TensorView): TensorView {
  return unary("log1p", tensor);
}

/** The sine of radians. Integers become float. Throws `dtype-mismatch` for bool. */
export function sin(tensor: TensorView): TensorView {
  return unary("sin", tensor);
}

/** The cosine of radians. Integers become float. Throws `dtype-mismatch` for bool. */
export function cos(tensor: TensorView): TensorView {
  return unary("cos", tensor);
}

/** The tangent of radians. Integers become float. Throws `dtype-mismatch` for bool. */
export function tan(tensor: TensorView): TensorView {
  return unary("tan", tensor);
}

/** The angle from -pi / 2 to pi / 2 with this sine. Integers become float. Throws `dtype-mismatch` for bool. */
export function asin(tensor: TensorView): TensorView {
  return unary("asin", tensor);
}

/** The angle from 0 to pi with this cosine. Integers become float. Throws `dtype-mismatch` for bool. */
export function acos(tensor: TensorView): TensorView {
  return unary("acos", tensor);
}

/** The angle from -pi / 2 to pi / 2 with this tangent. Integers become float. Throws `dtype-mismatch` for bool. */
export function atan(tensor: TensorView): TensorView {
  return unary("atan", tensor);
}

/** The hyperbolic sine. Integers become float. Throws `dtype-mismatch` for bool. */
export function sinh(tensor: TensorView): TensorView {
  return unary("sinh", tensor);
}

/** The hyperbolic cosine. Integers become float. Throws `dtype-mismatch` for bool. */
export function cosh(tensor: TensorView): TensorView {
  return unary("cosh", tensor);
}

/** The hyperbolic tangent. Integers become float. Throws `dtype-mismatch` for bool. */
export function tanh(tensor: TensorView): TensorView {
  return unary("tanh", tensor);
}

/** The error function. Integers become float. Throws `dtype-mismatch` for bool. */
export function erf(tensor: TensorView): TensorView {
  return unary("erf", tensor);
}

/**
 * The cumulative normal distribution, (1 + erf(x / sqrt(2))) / 2. Integers become float. Throws `dtype-mismatch` for
 * bool.
 */
export function normalCdf(tensor: TensorView): TensorView {
  return unary("normalCdf", tensor);
}

/** 1 / (1 + exp(-x)). Integers become float. Throws `dtype-mismatch` for bool. */
export function sigmoid(tensor: TensorView): TensorView {
  return unary("sigmoid", tensor);
}

/** x sigmoid(x). Integers become float. Throws `dtype-mismatch` for bool. */
export function silu(tensor: TensorView): TensorView {
  return unary("silu", tensor);
}

/** log(1 + exp(x)). Integers become float. Throws `dtype-mismatch` for bool. */
export function softplus(tensor: TensorView): TensorView {
  return unary("softplus", tensor);
}

/**
 * GELU as in PyTorch, by erf or with "tanh" by tanh. Integers become float. Throws `dtype-mismatch` for bool,
 * `bad-argument`.
 */
export function gelu(tensor: TensorView, approximate: "none" | "tanh" = "none"): TensorView {
  const place = callOf("gelu", [tensor], approximate === "none" ? undefined : approximate);
  requireOneOf(["none", "tanh"], approximate, "a form of gelu", place);
  return unary(approximate === "tanh" ? "geluTanh" : "gelu", tensor, place);
}
