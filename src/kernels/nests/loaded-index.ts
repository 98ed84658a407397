/** Indices that a nest loads: in range for the address, and a value to use instead of what an index outside reads. */
import type { DType } from "../../numerics/dtype.ts";
import {
  apply,
  choose,
  computeType,
  constant,
  convert,
  type Expression,
  operand,
} from "../../numerics/scalar/expression.ts";

/** Operand 0, an index of `dtype`, as the nearest index of an axis of `extent` elements, at least one. */
function nearest(dtype: DType, extent: number): Expression {
  const index = operand(computeType[dtype], 0);
  return apply("min", apply("max", index, constant(index.type, 0)), constant(index.type, extent - 1));
}

/** The place of operand 0 along the axis. */
export function placeExpression(dtype: DType, extent: number): Expression {
  return convert("i32", nearest(dtype, extent));
}

/** Operand 1, a value of `read`, if operand 0 is an index of the axis; otherwise `outside`. */
export function insideExpression(dtype: DType, extent: number, read: DType, outside: Expression): Expression {
  const index = operand(computeType[dtype], 0);
  return choose([nearest(dtype, extent), "eq", index], operand(computeType[read], 1), outside);
}
