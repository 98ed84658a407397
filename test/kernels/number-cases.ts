/** Binary ops on a tensor and a number: on either side, over numbers at edges, also ones that 16 bits cannot hold. */
import type { NumberOperand } from "../../src/ir/ops/number-operand.ts";
import type { BinaryOpType } from "../../src/ir/ops/op.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { arithmeticDTypes, binary, numberOf } from "./reference.ts";
import type { Values } from "./run-kernel.ts";

export interface NumberCase {
  readonly op: BinaryOpType;
  readonly dtype: DType;
  readonly scalar: NumberOperand;
}

const floats = ["0.1", "-2.5", "0", "-0", "1e-310", "3e300", "-Infinity", "NaN", "16777217"];
const integers = ["7", "-3", "0", "-1", "2147483647", "-2147483648"];
const wide = [...integers, "9007199254740993", "-9223372036854775808"];

function textsOf(dtype: DType): readonly string[] {
  if (dtypes[dtype].family === "float") return floats;
  return dtype === "int64" ? wide : integers;
}

/** Both sides; in turn where they give the same. */
function positionsOf(op: BinaryOpType, i: number): readonly (0 | 1)[] {
  return op === "sub" || op === "div" || op === "lt" ? [0, 1] : [i % 2 === 0 ? 0 : 1];
}

export const numberCases: readonly NumberCase[] = (
  ["add", "sub", "mul", "div", "maximum", "lt", "ne"] as const
).flatMap((op) =>
  arithmeticDTypes.flatMap((dtype) =>
    textsOf(dtype).flatMap((text, i) =>
      positionsOf(op, i).map((position): NumberCase => ({ op, dtype, scalar: { position, text } })),
    ),
  ),
);

export function withNumber({ op, dtype, scalar }: NumberCase, values: Values): Values {
  const number = numberOf(dtype, scalar.text);
  return values.map((x) => (scalar.position === 0 ? binary(op, dtype, number, x) : binary(op, dtype, x, number)));
}
