/** Readers of ops that compute, by name. */
import type { Tensor } from "../../../ir/domain.ts";
import { reductionFunctions } from "../../../ir/ops/functions/reduction.ts";
import { unaryFunctions } from "../../../ir/ops/functions/unary.ts";
import type { Op, ReductionOpType, UnaryOpType } from "../../../ir/ops/op.ts";
import { keysOf } from "../../../support/keys-of.ts";
import { reducedAxes } from "./op-axes.ts";
import { opened, type OpContext, type OpReader } from "./op-context.ts";
import { failAt } from "../../syntax/parse-error.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  failExpected,
  readWord,
  type Scanner,
  skipBlanks,
  take,
} from "../../syntax/scanner.ts";

/** By the names of all, the printed ones first. */
const reductions: ReadonlyMap<string, ReductionOpType> = new Map([
  ...keysOf(reductionFunctions).map((op) => [reductionFunctions[op].printed, op] as const),
  ...keysOf(reductionFunctions).flatMap((op) => reductionFunctions[op].alsoRead.map((name) => [name, op] as const)),
]);

function unary(op: UnaryOpType): OpReader {
  return (context, output) => {
    const input = opened(context);
    expectAcrossLines(context.scanner, ")");
    take(context.scanner, ";");
    return { kind: "Unary", op, inputs: [input.id], output: output.id };
  };
}

/** Braid's `__cast( T0, __bfloat )`; nvFuser names the conversion (`__float2bfloat(T0)`). The output's dtype says what it is. */
export function cast(context: OpContext, output: Tensor): Op {
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

const floats = ["half", "bfloat", "float", "double"];

export const computeReaders: readonly (readonly [name: string, reader: OpReader])[] = [
  ...keysOf(unaryFunctions).map((op) => [op, unary(op)] as const),
  ...keysOf(unaryFunctions).flatMap((op) => unaryFunctions[op].alsoRead.map((name) => [name, unary(op)] as const)),
  ["__cast", cast],
  ...floats.flatMap((from) => floats.map((to) => [`__${from}2${to}`, cast] as const)),
  ["reduction", reduction],
];
