/** Ops that compute elements. */
import type { Tensor } from "../../../ir/domain.ts";
import { binaryFunctions } from "../../../ir/ops/functions/binary.ts";
import { reductionFunctions } from "../../../ir/ops/functions/reduction.ts";
import { unaryFunctions } from "../../../ir/ops/functions/unary.ts";
import type { BinaryOp, CastOp, Op, ReductionOp, ReductionOpType, UnaryOp, UnaryOpType } from "../../../ir/ops/op.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { keysOf } from "../../../support/keys-of.ts";
import { failAt } from "../text/source.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  failExpected,
  readWord,
  type Scanner,
  skipBlanks,
  skipSpace,
  take,
} from "../text/scanner.ts";
import type { PrintContext } from "../context.ts";
import { printNumber, readNumber } from "./numbers.ts";
import { reducedAxes } from "./implied-axes.ts";
import { ofOne, opened, operand, type OpContext, type OpReader, type OpSyntax, printOperand } from "./op-syntax.ts";

export const unarySyntax: OpSyntax<UnaryOp> = {
  print: (op, context) => `${op.op}(${printOperand(op, 0, context)});`,
  readers: Object.fromEntries([
    ...keysOf(unaryFunctions).map((op) => [op, unary(op)] as const),
    ...keysOf(unaryFunctions).flatMap((op) => unaryFunctions[op].alsoRead.map((name) => [name, unary(op)] as const)),
  ]),
};

function unary(op: UnaryOpType): OpReader {
  return ofOne(({ scanner }) => {
    expectAcrossLines(scanner, ")");
    take(scanner, ";");
    return { kind: "Unary", op };
  });
}

/** `-T0;`: nvFuser's spelling of neg. The scanner is after the sign. */
export function readNegation(context: OpContext, output: Tensor): Op {
  const input = operand(context);
  expectAcrossLines(context.scanner, ";");
  return { kind: "Unary", op: "neg", inputs: [input.id], output: output.id };
}

const floats = ["half", "bfloat", "float", "double"];

/**
 * Braid's `__cast( T0, __bfloat )`. nvFuser names the conversion (`__float2bfloat(T0)`). The output's dtype determines
 * the conversion.
 */
export const castSyntax: OpSyntax<CastOp> = {
  print: (op, context) => {
    const { dtype } = at(context.program.tensors, op.output);
    return `__cast( ${printOperand(op, 0, context)}, ${dtypes[dtype].printed} )`;
  },
  readers: Object.fromEntries([
    ["__cast", cast],
    ...floats.flatMap((from) => floats.map((to) => [`__${from}2${to}`, cast] as const)),
  ]),
};

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

/** `(float)(T0)`: nvFuser's other spelling of a conversion; the scanner is before its first parenthesis. */
export function readCastInParentheses(context: OpContext, output: Tensor): Op {
  expect(context.scanner, "(");
  if (readWord(context.scanner) === "") failExpected(context.scanner, "a dtype");
  expect(context.scanner, ")");
  return cast(context, output);
}

/** `<lhs>` and, on the next line, `+ <rhs>;`. It has no name, so `readBinary` parses text that begins with a tensor. */
export const binarySyntax: OpSyntax<BinaryOp> = {
  print: (op, context, indent) =>
    `${binaryOperand(op, 0, context)}\n${indent}   ${binaryFunctions[op.op].symbol} ${binaryOperand(op, 1, context)};`,
  readers: {},
};

function binaryOperand(op: BinaryOp, position: 0 | 1, context: PrintContext): string {
  const { scalar } = op;
  if (scalar?.position === position) return printNumber(scalar, at(context.program.tensors, op.output).dtype);
  return printOperand(op, scalar === undefined ? position : 0, context);
}

const binarySigns = keysOf(binaryFunctions).map((op) => [binaryFunctions[op].symbol, op] as const);

export function readBinary(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  const lhs = tensorOrNumber(context);
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
  const rhs = typeof lhs === "string" ? operand(context) : tensorOrNumber(context);
  expectAcrossLines(scanner, ";");
  const number = [lhs, rhs].findIndex((side) => typeof side === "string");
  const inputs = [lhs, rhs].flatMap((side) => (typeof side === "string" ? [] : [side.id]));
  const binary = { kind: "Binary", op: op[1], inputs, output: output.id } as const;
  const text = number < 0 ? undefined : [lhs, rhs][number];
  return typeof text === "string" ? { ...binary, scalar: { position: number === 0 ? 0 : 1, text } } : binary;
}

function tensorOrNumber(context: OpContext): Tensor | string {
  skipSpace(context.scanner);
  return readNumber(context.scanner) ?? operand(context);
}

export const reductionSyntax: OpSyntax<ReductionOp> = {
  print: (op, context) => {
    const initial = initialValue(op.op, at(context.program.tensors, op.output).dtype);
    const { printed } = reductionFunctions[op.op];
    return `reduction( ${printOperand(op, 0, context)}, op = ${printed}, initial value = ${initial}, allreduce = false )`;
  },
  readers: {
    reduction: ofOne((context, input, output, start) => {
      const { scanner } = context;
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
      };
    }),
  },
};

/** The neutral element, in nvFuser's form. */
function initialValue(op: ReductionOpType, dtype: DType): string {
  const value = reductionFunctions[op].identity[dtype];
  if (dtype === "bool") return String(value !== 0);
  if (dtypes[dtype].family !== "float") return String(value);
  // The sum's identity is -0, which prints as 0.
  return Number.isFinite(Number(value))
    ? `float(${Math.abs(Number(value))})`
    : String(value).replace("Infinity", "inf");
}

/** By all names, the printed ones first. */
const reductions: ReadonlyMap<string, ReductionOpType> = new Map([
  ...keysOf(reductionFunctions).map((op) => [reductionFunctions[op].printed, op] as const),
  ...keysOf(reductionFunctions).flatMap((op) => reductionFunctions[op].alsoRead.map((name) => [name, op] as const)),
]);

/** The neutral element follows from the op: `float(0)`, `-inf`, `-2147483648`, `true`. */
function skipInitialValue(scanner: Scanner): void {
  take(scanner, "-");
  if (readWord(scanner) === "") failExpected(scanner, "a value");
  if (!take(scanner, "(")) return;
  take(scanner, "-");
  readWord(scanner);
  if (!take(scanner, ")")) failExpected(scanner, '")"');
}
