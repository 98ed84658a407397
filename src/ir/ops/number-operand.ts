/**
 * A number as one operand of a binary or ternary op: `mul(x, 0.5)`. It enters in the type in which the tensor's dtype
 * is computed, so it is not rounded to half or bfloat16. As in PyTorch, it does not widen a dtype of its family: only a
 * fractional number makes integers float, and a whole one makes bool int64.
 */
import { type DType, dtypes } from "../../numerics/dtype.ts";
import type { ScalarType } from "../../numerics/scalar/expression.ts";
import type { Value } from "../../numerics/tensor/host-tensor.ts";
import { type Call, call, type CallArgument, reject } from "./call.ts";

export interface NumberOperand<Position extends number = 0 | 1> {
  /** Which operand the number is, counted from 0. */
  readonly position: Position;
  /** As JavaScript writes the number: `0.5`, `-0`, `Infinity`. Text, because JSON has no -0, NaN and bigint. */
  readonly text: string;
}

type AnyNumber = NumberOperand<number>;

/** The operands of a binary op: its tensors, and the attribute for an operand that is a number. */
export interface SplitOperands<T> {
  readonly tensors: readonly T[];
  readonly number: { readonly scalar?: NumberOperand };
}

/** Throws `bad-argument` for two numbers. */
export function splitOperands<T extends object>(
  name: string,
  a: T | number | bigint,
  b: T | number | bigint,
): SplitOperands<T> {
  if (!isNumber(a)) {
    return isNumber(b)
      ? { tensors: [a], number: { scalar: { position: 1, text: numberText(b) } } }
      : { tensors: [a, b], number: {} };
  }
  if (!isNumber(b)) return { tensors: [b], number: { scalar: { position: 0, text: numberText(a) } } };
  return reject(call(name, { code: numberText(a) }, { code: numberText(b) }), {
    code: "bad-argument",
    message: `${name} of two numbers`,
    found: "no tensor",
    expected: "at least one tensor",
    help: "compute the number in the program file, or make one of them an input: fusion.input([])",
  });
}

/** A call's operands as diagnostics show them: the tensors, and the number where it stands. */
export function operandArguments(
  shown: readonly CallArgument[],
  scalar?: NumberOperand<number>,
): readonly CallArgument[] {
  return scalar === undefined ? shown : shown.toSpliced(scalar.position, 0, { code: scalar.text });
}

export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** Whole numbers are written in full, because `1e+21` is no text of an integer. */
export function numberText(value: number | bigint): string {
  if (Object.is(value, -0)) return "-0";
  return typeof value === "number" && Number.isInteger(value) ? String(BigInt(value)) : String(value);
}

function isWhole({ text }: AnyNumber): boolean {
  return /^-?\d+$/u.test(text);
}

/** The dtype of an op on a tensor of `dtype` and the number. */
export function promoteNumber(dtype: DType, number: AnyNumber): DType {
  const { family } = dtypes[dtype];
  if (family === "float") return dtype;
  if (!isWhole(number)) return "float";
  return family === "bool" ? "int64" : dtype;
}

/** The number as an element of a compute type. */
export function numberValue({ text }: AnyNumber, type: ScalarType): Value {
  if (type === "i64") return BigInt(text);
  return type === "f32" ? Math.fround(Number(text)) : Number(text);
}

/** Throws `bad-argument` unless the number is one of the integer dtype. */
export function requireNumberFits(number: AnyNumber, dtype: DType, place: Call): void {
  if (dtypes[dtype].family === "float") return;
  const limit = dtype === "int" ? 2n ** 31n : 2n ** 63n;
  if (isWhole(number)) {
    const value = BigInt(number.text);
    if (-limit <= value && value < limit) return;
  }
  reject(place, "bad-argument", `a number is not an ${dtype}`, {
    found: number.text,
    expected: `a whole number from ${-limit} to ${limit - 1n}`,
    help: 'convert the tensor first, for example cast(tensor, "float")',
  });
}
