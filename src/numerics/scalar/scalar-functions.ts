/**
 * The scalar semantics as functions on JavaScript values: bigint for int64, 0 or 1 for bool, a number else. Each call compiles a
 * function; keep it for a loop.
 */
import { compileFunction } from "../../support/compile-function.ts";
import type { DType } from "../dtype.ts";
import { emitJs, jsLibrary } from "./emit-js.ts";
import type { Expression } from "./expression.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "./op-types.ts";
import { binaryExpression, castExpression, reductionSemantics, unaryExpression } from "./scalar-semantics.ts";
import type { Value } from "../tensor/storage.ts";

export type UnaryFunction = (x: Value) => Value;
export type BinaryFunction = (x: Value, y: Value) => Value;

/** From a value of `dtype` to one. */
export function unaryFunction(op: UnaryOpType, dtype: DType): UnaryFunction {
  return compile<UnaryFunction>(unaryExpression(op, dtype), 1);
}

export function binaryFunction(op: BinaryOpType, dtype: DType): BinaryFunction {
  return compile<BinaryFunction>(binaryExpression(op, dtype), 2);
}

/** From a value of `from` to one of `to`. */
export function castFunction(from: DType, to: DType): UnaryFunction {
  return compile<UnaryFunction>(castExpression(from, to), 1);
}

export interface ReductionFunctions {
  readonly identity: Value;
  /** The next accumulator. */
  readonly combine: BinaryFunction;
  /** The result, of the dtype, from the last accumulator. */
  readonly finish: UnaryFunction;
}

export function reductionFunctions(op: ReductionOpType, dtype: DType): ReductionFunctions {
  const { identity, combine, finish } = reductionSemantics(op, dtype);
  return { identity, combine: compile<BinaryFunction>(combine, 2), finish: compile<UnaryFunction>(finish, 1) };
}

function compile<F>(expression: Expression, arity: number): F {
  const names = ["x", "y"].slice(0, arity);
  return compileFunction<F>(names, `return ${emitJs(expression, names)};`, jsLibrary);
}
