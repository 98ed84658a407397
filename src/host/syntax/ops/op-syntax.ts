/** Prints and parses the ops of one kind, and the operands that all of them have. */
import type { Tensor } from "../../../ir/domain.ts";
import { operandOrder } from "../../../ir/ops/axis-map.ts";
import { type NumberOperand, numberText } from "../../../ir/ops/number-operand.ts";
import { type Op, opOf, type OpSpec } from "../../../ir/ops/op.ts";
import { type DType, dtypes, floatDTypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import type { PrintContext, ReadContext } from "../context.ts";
import { printTensorOf } from "../statements/fields.ts";
import { expect, failExpected, type DumpScanner, skipSpace } from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { atTensor, parseTensor } from "../values/tensor.ts";

export interface OpSyntax<T extends Op> {
  /** The text after `=`. Lines after the first begin with `indent`. */
  print(op: T, context: PrintContext, indent: string): string;
  /** By the name that an op of the kind begins with. */
  readonly readers: Readonly<Record<string, OpReader>>;
}

export type OpContext = Pick<ReadContext, "scanner" | "tensors" | "names"> & {
  /** The outputs of the op after the first. */
  readonly further?: readonly Tensor[];
};

/** Parses the text after an op's name, which began at `start`. */
export type OpReader = (context: OpContext, output: Tensor, start: number) => Op;

/** A tensor, or `permute( T0, order = {1, 0} )` if the op reads it permuted. */
export function printOperand(op: Op, position: number, context: PrintContext): string {
  const text = printTensorOf(at(op.inputs, position), context);
  const order = operandOrder(op, position);
  return order === null ? text : `permute( ${text}, order = {${order.join(", ")}} )`;
}

/** A tensor, after white space and line ends. */
export function readTensorOperand({ scanner, tensors }: OpContext): Tensor {
  skipSpace(scanner);
  if (!atTensor(scanner)) failOperand(scanner);
  return parseTensor(scanner, tensors);
}

function failOperand(scanner: DumpScanner): never {
  const { text, position, source } = scanner;
  if (!/^(?:[a-z]+\(|[bdfi]?\d|-\d|true|false)/u.test(text.slice(position, position + 40))) {
    failExpected(scanner, "a tensor, such as T0_g_float[iS0{i0}]");
  }
  failAt(source, position, "dump-unsupported", "an operand of an op is a scalar", {
    expected: "a tensor, or a number beside + - * /",
    help: "write its value, or make it an input with an axis of extent 1 for each axis of the output",
  });
}

/** `( <operand>`; the caller parses the fields that follow. */
export function opened(context: OpContext): Tensor {
  expect(context.scanner, "(");
  return readTensorOperand(context);
}

/** Parses an op of one operand. `rest` parses the fields after the operand, to the end of the op. */
export function ofOne(rest: (context: OpContext, input: Tensor, output: Tensor, start: number) => OpSpec): OpReader {
  return (context, output, start) => {
    const input = opened(context);
    return opOf(rest(context, input, output, start), [input.id], output.id);
  };
}

// Numbers as operands, in nvFuser's form: `double(0.5)` beside floats, `2` beside integers. nvFuser writes floats with
// 17 digits, Braid with as many as they need.

export function printNumber({ text }: NumberOperand<number>, dtype: DType): string {
  if (dtypes[dtype].family !== "float") return text;
  const short = text === "-0" ? text : String(Number(text));
  return `double(${short.replace("Infinity", "inf").replace("NaN", "nan")})`;
}

/** The floats of dumps. */
export const floatNames: readonly string[] = floatDTypes.map((dtype) => dtypes[dtype].names.printed);

const digits = String.raw`-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)`;
const inType = new RegExp(String.raw`(?:${floatNames.join("|")})\(\s*(${digits})\s*\)`, "uy");
const whole = /-?\d+(?![\w.])/uy;

/** Whether a number comes next. */
export function atNumber(scanner: DumpScanner): boolean {
  return match(scanner) !== null;
}

/** Parses a number. Null, at the same position, if none comes next. */
export function readNumber(scanner: DumpScanner): string | null {
  const found = match(scanner);
  if (found === null) return null;
  scanner.position += found[0].length;
  const inner = found[1];
  if (inner === undefined) return BigInt(found[0]).toString();
  return numberText(Number(inner.replace("inf", "Infinity").replace("nan", "NaN")));
}

function match({ text, position }: DumpScanner): RegExpExecArray | null {
  for (const pattern of [inType, whole]) {
    pattern.lastIndex = position;
    const found = pattern.exec(text);
    if (found !== null) return found;
  }
  return null;
}
