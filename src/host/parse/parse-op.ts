/**
 * Computations in dump text: the tensor, then on the next line `= ` and what it is computed from. One reader per name; what an op
 * does not print (the axes of a reduction, the order of a permute) follows from its output.
 */
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { BinaryOpType, Op, ReductionOpType } from "../../ir/ops.ts";
import type { UnaryOpType } from "../../numerics/op-types.ts";
import { keysOf } from "../../support/keys-of.ts";
import { type Names, parseNamed } from "./names.ts";
import { axisPosition, permuteOrder, reducedAxes } from "./op-axes.ts";
import { failAt } from "./parse-error.ts";
import { parseAxis } from "./parse-axis.ts";
import { atTensor, parseTensor } from "./parse-tensor.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  expectNumber,
  failExpected,
  quoted,
  readWord,
  type Scanner,
  skipBlanks,
  skipSpace,
  take,
} from "./scanner.ts";
import type { TensorTable } from "./tensor-table.ts";

export interface OpContext {
  readonly scanner: Scanner;
  readonly tensors: TensorTable;
  readonly names: Names;
}

type OpReader = (context: OpContext, output: Tensor, start: number) => Op;

/** Reads what stands after `= `; the scanner is behind the op's name, which began at `start`. Null for a name that is no op. */
export function parseNamedOp(context: OpContext, output: Tensor, name: string, start: number): Op | null {
  const reader = readers.get(name);
  return reader === undefined ? null : reader(context, output, start);
}

/** `<lhs>` and, on the next line, `+ <rhs>;`. */
export function parseBinary(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  const lhs = operand(context);
  skipSpace(scanner);
  const { position } = scanner;
  const op = binarySigns.find(([sign]) => take(scanner, sign));
  if (op === undefined) {
    failAt(scanner.source, position, {
      code: "dump-unsupported",
      message: "two tensors are joined by an operator that Braid does not have",
      expected: binarySigns.map(([sign]) => sign).join(" "),
      help: "write the program with these operators",
    });
  }
  const rhs = operand(context);
  expectAcrossLines(scanner, ";");
  return { kind: "Binary", op: op[1], inputs: [lhs.id, rhs.id], output: output.id };
}

const binarySigns: readonly (readonly [string, BinaryOpType])[] = [
  ["+", "add"],
  ["-", "sub"],
  ["*", "mul"],
  ["/", "div"],
];

const unaryOps: { readonly [K in UnaryOpType]: true } = { neg: true, abs: true, relu: true, gelu: true, exp: true };

const reductions: ReadonlyMap<string, ReductionOpType> = new Map([
  ["add", "sum"],
  ["mul", "prod"],
  ["max", "amax"],
  ["fmax", "amax"],
  ["min", "amin"],
  ["fmin", "amin"],
]);

/** A tensor; in front of it white space and ends of lines. */
function operand({ scanner, tensors }: OpContext): Tensor {
  skipSpace(scanner);
  if (!atTensor(scanner)) failOperand(scanner);
  return parseTensor(scanner, tensors);
}

function failOperand(scanner: Scanner): never {
  const { text, position, source } = scanner;
  if (!/^(?:[a-z]+\(|[bdfi]?\d|-\d|true|false)/u.test(text.slice(position, position + 40))) {
    failExpected(scanner, "a tensor, such as T0_g_float[iS0{i0}]");
  }
  failAt(source, position, {
    code: "dump-unsupported",
    message: "an operand of an op is a scalar",
    expected: "tensors alone",
    help: "make the scalar a tensor; Braid's ops take no scalar operands",
  });
}

/** `name( <operand>`; the fields that follow are the caller's. */
function opened(context: OpContext): Tensor {
  expect(context.scanner, "(");
  return operand(context);
}

function unary(op: UnaryOpType): OpReader {
  return (context, output) => {
    const input = opened(context);
    expectAcrossLines(context.scanner, ")");
    take(context.scanner, ";");
    return { kind: "Unary", op, inputs: [input.id], output: output.id };
  };
}

/** `, cache_op=Streaming )`: how nvFuser's copy goes through caches, which says nothing about the copy. */
function closeSet(scanner: Scanner): void {
  expect(scanner, ",");
  expectField(scanner, "cache_op");
  if (readWord(scanner) === "") failExpected(scanner, "a cache operation");
  expect(scanner, ")");
}

function set(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  closeSet(context.scanner);
  return { kind: "Set", inputs: [input.id], output: output.id };
}

function segmenterSet(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  skipBlanks(context.scanner);
  if (context.scanner.text[context.scanner.position] === ",") closeSet(context.scanner);
  else expect(context.scanner, ")");
  return { kind: "Set", inputs: [input.id], output: output.id };
}

function permute(context: OpContext, output: Tensor, start: number): Op {
  const input = opened(context);
  closeSet(context.scanner);
  const root = context.tensors.notes.get(output.id)?.root ?? null;
  const order = permuteOrder(context.scanner, start, input, output, root);
  return { kind: "Permute", order, inputs: [input.id], output: output.id };
}

/** Braid's `__cast( T0, __bfloat )`; nvFuser names the conversion (`__float2bfloat(T0)`). The output's dtype says what it is. */
function cast(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  skipBlanks(context.scanner);
  if (take(context.scanner, ",")) {
    skipBlanks(context.scanner);
    readWord(context.scanner);
  }
  expect(context.scanner, ")");
  take(context.scanner, ";");
  return { kind: "Cast", to: output.dtype, inputs: [input.id], output: output.id };
}

function reshape(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  expect(context.scanner, ")");
  return { kind: "Reshape", inputs: [input.id], output: output.id };
}

function flags({ scanner }: OpContext): readonly boolean[] {
  expect(scanner, ",");
  expectField(scanner, "flags");
  expect(scanner, "{");
  const values: boolean[] = [];
  if (!take(scanner, "}")) {
    do {
      skipBlanks(scanner);
      const value = take(scanner, "true");
      if (!value && !take(scanner, "false")) failExpected(scanner, "true or false");
      values.push(value);
      skipBlanks(scanner);
    } while (take(scanner, ","));
    expect(scanner, "}");
  }
  expect(scanner, ")");
  return values;
}

function squeeze(context: OpContext, output: Tensor, start: number): Op {
  const input = opened(context);
  const squeezed = flags(context);
  const rank = withoutReductions(input.domain.logical).length;
  if (squeezed.length !== rank) {
    failAt(context.scanner.source, start, {
      code: "dump-contradiction",
      message: "a squeeze has not one flag per axis of its operand",
      found: `number of flags ${squeezed.length}, number of axes ${rank}`,
      expected: "one flag per axis",
      help: "correct the flags",
    });
  }
  return {
    kind: "Squeeze",
    axes: squeezed.flatMap((flag, i) => (flag ? [i] : [])),
    inputs: [input.id],
    output: output.id,
  };
}

function reduction(context: OpContext, output: Tensor, start: number): Op {
  const { scanner } = context;
  const input = opened(context);
  expect(scanner, ",");
  expectField(scanner, "op");
  const opStart = scanner.position;
  const name = readWord(scanner);
  const op = reductions.get(name);
  if (op === undefined) {
    failAt(scanner.source, opStart, {
      code: "dump-unsupported",
      message: `there is no reduction ${name}`,
      expected: [...reductions.keys()].join(", "),
      help: "reduce with one of these",
    });
  }
  expect(scanner, ",");
  expect(scanner, "initial");
  expectField(scanner, "value");
  skipInitialValue(scanner);
  expect(scanner, ",");
  expectField(scanner, "allreduce");
  if (!take(scanner, "false") && !take(scanner, "true")) failExpected(scanner, "true or false");
  expect(scanner, ")");
  return {
    kind: "Reduction",
    op,
    axes: reducedAxes(scanner, start, input, output),
    inputs: [input.id],
    output: output.id,
  };
}

/** The neutral element follows from the op: `float(0)`, `-inf`, `-2147483648`, `true`. */
function skipInitialValue(scanner: Scanner): void {
  take(scanner, "-");
  if (readWord(scanner) === "") failExpected(scanner, "a value");
  if (!take(scanner, "(")) return;
  take(scanner, "-");
  readWord(scanner);
  if (!take(scanner, ")")) failExpected(scanner, '")"');
}

/** `{ {0, 8, 1} {2, 6, 1} }`: start, stop and step of every axis. */
function slice(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  const input = opened(context);
  expect(scanner, ",");
  expect(scanner, "{");
  const ranges: { start: number; stop: number }[] = [];
  while (take(scanner, "{")) {
    const start = bound(scanner);
    expect(scanner, ",");
    const stop = bound(scanner);
    expect(scanner, ",");
    const { position } = scanner;
    if (bound(scanner) !== 1) failStep(scanner, position);
    expect(scanner, "}");
    ranges.push({ start, stop });
    take(scanner, ",");
    skipBlanks(scanner);
  }
  expect(scanner, "}");
  expect(scanner, ")");
  return { kind: "Slice", ranges, inputs: [input.id], output: output.id };
}

function failStep(scanner: Scanner, position: number): never {
  failAt(scanner.source, position, {
    code: "dump-unsupported",
    message: "a slice has a step",
    expected: "step 1",
    help: "reshape and select instead; Braid's slices take every element",
  });
}

function bound(scanner: Scanner): number {
  skipBlanks(scanner);
  const { position } = scanner;
  if (/^[a-z(]/u.test(scanner.text.slice(position, position + 1))) {
    failAt(scanner.source, position, {
      code: "dump-unsupported",
      message: "a slice has a bound that is not constant",
      expected: "constant bounds",
      help: "give the tensor constant extents",
    });
  }
  return expectNumber(scanner, "a bound of the slice");
}

function select(context: OpContext, output: Tensor): Op {
  const { scanner, names } = context;
  const input = opened(context);
  expect(scanner, ",");
  expectField(scanner, "axis");
  const axisStart = scanner.position;
  const axis = axisPosition(scanner, axisStart, input, parseAxis(scanner).id, withoutReductions(input.domain.logical));
  expect(scanner, ",");
  expectField(scanner, "index");
  const index = parseNamed(scanner, names, "a slice index");
  expect(scanner, ")");
  return { kind: "Select", axis, index, inputs: [input.id], output: output.id };
}

function matmul(context: OpContext, output: Tensor): Op {
  const a = opened(context);
  expectAcrossLines(context.scanner, ",");
  const b = operand(context);
  expectAcrossLines(context.scanner, ")");
  return { kind: "Matmul", inputs: [a.id, b.id], output: output.id };
}

/** The blanks before commas, and those before the bias, are nvFuser's. */
function linear(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  const inputs: TensorId[] = [opened(context).id];
  expectAcrossLines(scanner, ",");
  inputs.push(operand(context).id);
  skipSpace(scanner);
  if (take(scanner, ",")) inputs.push(operand(context).id);
  expectAcrossLines(scanner, ")");
  return { kind: "Linear", inputs, output: output.id };
}

const readers: ReadonlyMap<string, OpReader> = new Map<string, OpReader>([
  ...keysOf(unaryOps).map((op) => [op, unary(op)] as const),
  // nvFuser marks the functions of float.
  ["expf", unary("exp")],
  ["fabs", unary("abs")],
  ["fabsf", unary("abs")],
  ["Set", set],
  ["SegmenterSet", segmenterSet],
  ["Set.Permute", permute],
  ["__cast", cast],
  ...["half", "bfloat", "float", "double"].flatMap((from) =>
    ["half", "bfloat", "float", "double"].map((to): [string, OpReader] => [`__${from}2${to}`, cast]),
  ),
  ["view", reshape],
  ["reshape", reshape],
  [
    "broadcast",
    (context, output) => {
      const input = opened(context);
      return { kind: "Broadcast", flags: flags(context), inputs: [input.id], output: output.id };
    },
  ],
  ["squeeze", squeeze],
  ["reduction", reduction],
  ["slice", slice],
  ["select", select],
  ["matmul", matmul],
  ["linear", linear],
]);

/** `(float)(T0)`: nvFuser's other spelling of a conversion; the scanner is before its first parenthesis. */
export function parseCastInParentheses(context: OpContext, output: Tensor): Op {
  expect(context.scanner, "(");
  if (readWord(context.scanner) === "") failExpected(context.scanner, "a dtype");
  expect(context.scanner, ")");
  return cast(context, output);
}

/** `-T0;`: nvFuser's spelling of neg; the scanner is behind the sign. */
export function parseNegation(context: OpContext, output: Tensor): Op {
  const input = operand(context);
  expectAcrossLines(context.scanner, ";");
  return { kind: "Unary", op: "neg", inputs: [input.id], output: output.id };
}

export function failUnknownOp(scanner: Scanner, start: number, name: string): never {
  failAt(scanner.source, start, {
    code: "dump-unsupported",
    message: `there is no op ${name}`,
    found: quoted(name),
    expected: `one of ${[...readers.keys()].filter((known) => !known.startsWith("__")).join(", ")}`,
    help: "leave the op out of the program, or write it with ops that Braid has",
  });
}
