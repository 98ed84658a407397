/** How dumps spell the ops that have several forms: one table each for printer and parser. */
import type { BinaryOpType, ReductionOpType } from "../../ir/ops/op.ts";

/** Between the operands. */
export const binarySymbols: { readonly [K in BinaryOpType]: string } = { add: "+", sub: "-", mul: "*", div: "/" };

/** `op = add` */
export const reductionNames: { readonly [K in ReductionOpType]: string } = {
  sum: "add",
  prod: "mul",
  amax: "fmax",
  amin: "fmin",
};
