/**
 * Compiles scalar expressions of ops to functions on JavaScript values: bigint for int64, 0 or 1 for bool, otherwise
 * number. Compile once, outside a loop.
 */
import type { DType } from "../../src/numerics/dtype.ts";
import { emitJs, jsLibrary } from "../../src/numerics/scalar/emit-js.ts";
import type { Expression } from "../../src/numerics/scalar/expression.ts";
import { splitShared } from "../../src/numerics/scalar/split-shared.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { compileFunction } from "../../src/support/compile-function.ts";
import type { BinaryOpType } from "../../src/ir/ops/functions/binary.ts";
import {
  binaryExpression,
  castExpression,
  reductionSemantics,
  unaryExpression,
} from "../../src/ir/ops/functions/expressions.ts";
import type { ReductionOpType } from "../../src/ir/ops/functions/reduction.ts";
import type { UnaryOpType } from "../../src/ir/ops/functions/unary.ts";

type OfOne = (x: Value) => Value;
type OfTwo = (x: Value, y: Value) => Value;

/** Takes and returns values of `dtype`. */
export function compileUnary(op: UnaryOpType, dtype: DType): OfOne {
  return compile<OfOne>(unaryExpression(op, dtype), 1);
}

export function compileBinary(op: BinaryOpType, dtype: DType): OfTwo {
  return compile<OfTwo>(binaryExpression(op, dtype), 2);
}

/** Takes a value of `from`, returns a value of `to`. */
export function compileCast(from: DType, to: DType): OfOne {
  return compile<OfOne>(castExpression(from, to), 1);
}

export interface CompiledReduction {
  readonly identity: Value;
  /** Returns the next accumulator. */
  readonly combine: OfTwo;
  /** Converts the last accumulator to the result's dtype. */
  readonly finish: OfOne;
}

export function compileReduction(op: ReductionOpType, dtype: DType): CompiledReduction {
  const { identity, combine, finish } = reductionSemantics(op, dtype);
  return { identity, combine: compile<OfTwo>(combine, 2), finish: compile<OfOne>(finish, 1) };
}

/** A function of one number. */
export function compileOfOne(expression: Expression): OfOne {
  return compile<OfOne>(expression, 1);
}

function compile<F>(expression: Expression, arity: number): F {
  const names = ["x", "y"].slice(0, arity);
  const values = [...names];
  const lines: string[] = [];
  const operands = names.map((_, i) => i);
  const result = splitShared(expression, operands, (each, ...numbers) => {
    const text = emitJs(
      each,
      numbers.map((i) => at(values, i)),
    );
    lines.push(`const v${values.length} = ${text};`);
    return values.push(`v${values.length}`) - 1;
  });
  return compileFunction<F>(names, [...lines, `return ${at(values, result)};`].join("\n"), jsLibrary);
}
