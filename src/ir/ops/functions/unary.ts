/**
 * The elementwise functions of one operand, one row each (unary/). A new function is a row there and an exported
 * function in api/ops/elementwise. Dtype checks, kernels of all back ends, costs, printing and parsing read the row.
 * The oracle has a second definition of each function, with its error bound (oracle/definitions).
 */
import { activations } from "./unary/activations.ts";
import { arithmetic } from "./unary/arithmetic.ts";
import { exponential } from "./unary/exponential.ts";
import type { UnaryFunction } from "./unary/row.ts";

export type { UnaryFunction };

const rows = { ...arithmetic, ...exponential, ...activations } as const;

export type UnaryOpType = keyof typeof rows;

export const unaryFunctions: { readonly [K in UnaryOpType]: UnaryFunction } = rows;
