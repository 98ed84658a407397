/**
 * Numbers as operands, in nvFuser's form: `double(0.5)` beside floats, `2` beside integers. nvFuser writes floats with
 * 17 digits, Braid with as many as they need.
 */
import type { DType } from "../../../numerics/dtype.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { type NumberOperand, numberText } from "../../../ir/ops/number-operand.ts";
import type { Scanner } from "../text/scanner.ts";

export function printNumber({ text }: NumberOperand<number>, dtype: DType): string {
  if (dtypes[dtype].family !== "float") return text;
  const short = text === "-0" ? text : String(Number(text));
  return `double(${short.replace("Infinity", "inf").replace("NaN", "nan")})`;
}

const digits = String.raw`-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)`;
const inType = new RegExp(String.raw`(?:double|float|__half|__bfloat)\(\s*(${digits})\s*\)`, "uy");
const whole = /-?\d+(?![\w.])/uy;

/** Whether a number comes next. */
export function atNumber(scanner: Scanner): boolean {
  return match(scanner) !== null;
}

/** Parses a number. Null, at the same position, if none comes next. */
export function readNumber(scanner: Scanner): string | null {
  const found = match(scanner);
  if (found === null) return null;
  scanner.position += found[0].length;
  const inner = found[1];
  if (inner === undefined) return BigInt(found[0]).toString();
  return numberText(Number(inner.replace("inf", "Infinity").replace("nan", "NaN")));
}

function match({ text, position }: Scanner): RegExpExecArray | null {
  for (const pattern of [inType, whole]) {
    pattern.lastIndex = position;
    const found = pattern.exec(text);
    if (found !== null) return found;
  }
  return null;
}
