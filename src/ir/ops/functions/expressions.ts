/**
 * The semantics of ops on single elements, as scalar expressions for every dtype, from which kernel generators emit
 * code.
 *
 * - float, half and bfloat16 compute in float32: an op rounds to float32, then once to its dtype. double computes in
 * double.
 * - int wraps at 32 bits, int64 at 64.
 * - A cast from float to integer truncates and saturates, and NaN gives 0 (WebAssembly's trunc_sat). int64 to int
 * wraps. A cast to bool is x != 0. Every cast to half or bfloat16 goes through float32.
 */
import { type DType, dtypes, isPacked } from "../../../numerics/dtype.ts";
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
} from "../../../numerics/scalar/expression.ts";
import type { Value } from "../../../numerics/tensor/host-tensor.ts";
import { type NumberOperand, numberValue } from "../number-operand.ts";
import { binaryFunctions, type BinaryOpType } from "./binary.ts";
import { reductionFunctions, type ReductionOpType } from "./reduction.ts";
import { ternaryFunctions, type TernaryOpType } from "./ternary.ts";
import { unaryFunctions, type UnaryOpType } from "./unary.ts";

/** Operand 0 is a value of `dtype`. */
export function unaryExpression(op: UnaryOpType, dtype: DType): Expression {
  return roundTo(dtype, unaryFunctions[op].expression(operand(computeType[dtype], 0)));
}

/** Operands 0 and 1 are values of `dtype`. With `scalar`, operand 0 is the only one. */
export function binaryExpression(op: BinaryOpType, dtype: DType, scalar?: NumberOperand): Expression {
  const type = computeType[dtype];
  const { expression, result } = binaryFunctions[op];
  const to = result === "bool" ? "bool" : dtype;
  const first = operand(type, 0);
  if (scalar === undefined) return roundTo(to, expression(first, operand(type, 1)));
  const number: Expression = { kind: "constant", type, value: numberValue(scalar, type) };
  return roundTo(to, scalar.position === 0 ? expression(number, first) : expression(first, number));
}

/** Operand 0 is a bool, operands 1 and 2 are values of `dtype`. With `scalar`, operand 1 is the only value. */
export function ternaryExpression(op: TernaryOpType, dtype: DType, scalar?: NumberOperand<1 | 2>): Expression {
  const { expression } = ternaryFunctions[op];
  const condition = operand("i32", 0);
  const value = operand(computeType[dtype], 1);
  if (scalar === undefined) return expression(condition, value, operand(computeType[dtype], 2));
  const number = numberExpression(scalar.text, dtype);
  return scalar.position === 1 ? expression(condition, number, value) : expression(condition, value, number);
}

/** A number, given as `NumberOperand.text`, as an element of `dtype`. */
export function numberExpression(text: string, dtype: DType): Expression {
  const type = computeType[dtype];
  return roundTo(dtype, { kind: "constant", type, value: numberValue({ position: 1, text }, type) });
}

/** Operand 0 is a value of `from`. */
export function castExpression(from: DType, to: DType): Expression {
  const x = operand(computeType[from], 0);
  if (from === to) return x;
  if (to === "bool") return choose([x, "ne", constant(x.type, 0)], constant("i32", 1), constant("i32", 0));
  const converted = convert(computeType[to], x);
  return isPacked(to) ? { kind: "round", type: "f32", to, operand: converted } : converted;
}

/** The value of `full`, rounded to the dtype; `text` as in NumberOperand. */
export function fullExpression(text: string, dtype: DType): Expression {
  const type = computeType[dtype];
  const value: Expression = { kind: "constant", type, value: numberValue({ position: 0, text }, type) };
  return isPacked(dtype) ? { kind: "round", type: "f32", to: dtype, operand: value } : value;
}

/** `start + i * step` in int64, which int wraps. Operand 0 is the index i, an i64. */
export function iotaExpression(start: number, step: number, dtype: DType): Expression {
  const value = apply("add", constant("i64", start), apply("mul", operand("i64", 0), constant("i64", step)));
  return convert(computeType[dtype], value);
}

export interface ReductionSemantics {
  /** The accumulator's type. */
  readonly type: ScalarType;
  readonly identity: Value;
  /** The next accumulator. Operand 0 is the accumulator, operand 1 an element. */
  readonly combine: Expression;
  /** The result. Operand 0 is the last accumulator. */
  readonly finish: Expression;
  /** Whether `combine` rounds, so that the order matters: elements are combined in blocks (numerics/sum-order.ts). */
  readonly inBlocks: boolean;
}

export function reductionSemantics(op: ReductionOpType, dtype: DType): ReductionSemantics {
  const type = computeType[dtype];
  const { identity, combine, rounds } = reductionFunctions[op];
  const last = operand(type, 0);
  return {
    type,
    identity: identity(dtype),
    combine: combine(operand(type, 0), operand(type, 1)),
    finish: isPacked(dtype) ? { kind: "round", type: "f32", to: dtype, operand: last } : last,
    inBlocks: rounds && dtypes[dtype].family === "float",
  };
}
