/** Elementwise functions that PyTorch and nvFuser call as Braid does. */
import * as ops from "../ir/api/ops.ts";

const { abs, acos, asin, atan, ceil, cos, cosh, erf, exp, exp2, expm1, floor, log, log1p, log2, neg } = ops;
const { reciprocal, relu, round, rsqrt, sigmoid, sign, sin, sinh, sqrt, tan, tanh, trunc } = ops;
const { eq, ne, lt, le, gt, ge, maximum, minimum } = ops;

export const sameUnaries = [
  ...Object.entries({ abs, acos, asin, atan, ceil, cos, cosh, erf, exp, exp2, expm1, floor, log, log1p, log2, neg }),
  ...Object.entries({ reciprocal, relu, round, rsqrt, sigmoid, sign, sin, sinh, sqrt, tan, tanh, trunc }),
];

/** Of tensors or numbers, with a bool for each element. */
export const sameComparisons = Object.entries({ eq, ne, lt, le, gt, ge });

export const sameExtremes = Object.entries({ maximum, minimum });
