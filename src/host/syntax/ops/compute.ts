/** Ops that compute elements. */
import type { Tensor } from "../../../ir/domain.ts";
import { reductionFunctions } from "../../../ir/ops/functions/reduction.ts";
import { unaryFunctions } from "../../../ir/ops/functions/unary.ts";
import type { CastOp, Op, ReductionOp, ReductionOpType, UnaryOp, UnaryOpType } from "../../../ir/ops/op.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at, keysOf } from "../../../support/invariant.ts";
import { failAt } from "../text/source.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  failExpected,
  readWord,
  type DumpScanner,
  skipBlanks,
  take,
} from "../text/scanner.ts";
import { reducedAxes } from "./views.ts";
import {
  floatNames,
  ofOne,
  opened,
  readTensorOperand,
  type OpContext,
  type OpReader,
  type OpSyntax,
  printOperand,
} from "./op-syntax.ts";

export const unarySyntax: OpSyntax<UnaryOp> = {
  print: (op, context) => `${printedName(op.op)}(${printOperand(op, 0, context)});`,
  readers: Object.fromEntries([
    ...keysOf(unaryFunctions).map((op) => [printedName(op), unary(op)] as const),
    ...keysOf(unaryFunctions).flatMap((op) => unaryFunctions[op].alsoRead.map((name) => [name, unary(op)] as const)),
  ]),
};

function printedName(op: UnaryOpType): string {
  return unaryFunctions[op].printed ?? op;
}

function unary(op: UnaryOpType): OpReader {
  return ofOne(({ scanner }) => {
    expectAcrossLines(scanner, ")");
    take(scanner, ";");
    return { kind: "Unary", op };
  });
}

/** `-T0;` and `!T0;`: nvFuser's spellings of neg and logicalNot. The scanner is after the sign. */
export function readPrefixed(op: UnaryOpType, context: OpContext, output: Tensor): Op {
  const input = readTensorOperand(context);
  expectAcrossLines(context.scanner, ";");
  return { kind: "Unary", op, inputs: [input.id], output: output.id };
}

const floats = floatNames.map((name) => name.replace("__", ""));

/**
 * Braid's `__cast( T0, __bfloat )`. nvFuser names the conversion (`__float2bfloat(T0)`). The output's dtype determines
 * the conversion.
 */
export const castSyntax: OpSyntax<CastOp> = {
  print: (op, context) => {
    const { dtype } = at(context.program.tensors, op.output);
    return `__cast( ${printOperand(op, 0, context)}, ${dtypes[dtype].names.printed} )`;
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
      const op = readReduction(scanner);
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

/** `op = add` */
export function readReduction(scanner: DumpScanner): ReductionOpType {
  expectField(scanner, "op");
  const start = scanner.position;
  const name = readWord(scanner);
  return (
    reductions.get(name) ??
    failAt(scanner.source, start, "dump-unsupported", `there is no reduction ${name}`, {
      expected: [...reductions.keys()].join(", "),
      help: "reduce with one of these",
    })
  );
}

/** The neutral element, in nvFuser's form. */
function initialValue(op: ReductionOpType, dtype: DType): string {
  const value = reductionFunctions[op].identity(dtype);
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
function skipInitialValue(scanner: DumpScanner): void {
  take(scanner, "-");
  if (readWord(scanner) === "") failExpected(scanner, "a value");
  if (!take(scanner, "(")) return;
  take(scanner, "-");
  readWord(scanner);
  if (!take(scanner, ")")) failExpected(scanner, '")"');
}
