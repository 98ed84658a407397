/**
 * Computations in dump text: the tensor, then on the next line `= ` and what it is computed from. One reader per name; what an op
 * does not print (the axes of a reduction, the order of a permute) follows from its output.
 */
import type { Tensor } from "../../../ir/domain.ts";
import { binaryFunctions } from "../../../ir/ops/functions/binary.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { keysOf } from "../../../support/keys-of.ts";
import { cast, computeReaders } from "./compute-readers.ts";
import { contractionReaders } from "./contraction-readers.ts";
import { layoutReaders } from "./layout-readers.ts";
import { operand, type OpContext, type OpReader } from "./op-context.ts";
import { failAt } from "../../syntax/parse-error.ts";
import { atTensor } from "../../syntax/tensor.ts";
import {
  expect,
  expectAcrossLines,
  failExpected,
  quoted,
  readWord,
  type Scanner,
  skipSpace,
  take,
} from "../../syntax/scanner.ts";

const readers: ReadonlyMap<string, OpReader> = new Map([...computeReaders, ...contractionReaders, ...layoutReaders]);

/** Reads from the `=` on. `other` reads what has a name that is no op's; the scanner is behind the name, which began at `start`. */
export function parseComputed<T>(
  context: OpContext,
  output: Tensor,
  other: (name: string, start: number) => T,
): Op | T {
  const { scanner } = context;
  expectAcrossLines(scanner, "=");
  skipSpace(scanner);
  if (atTensor(scanner)) return parseBinary(context, output);
  const start = scanner.position;
  if (scanner.text.startsWith("(", start)) return parseCastInParentheses(context, output);
  if (take(scanner, "-")) return parseNegation(context, output);
  const name = readWord(scanner);
  if (name === "") failExpected(scanner, "an op");
  const reader = readers.get(name);
  return reader === undefined ? other(name, start) : reader(context, output, start);
}

/** `<lhs>` and, on the next line, `+ <rhs>;`. */
function parseBinary(context: OpContext, output: Tensor): Op {
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

const binarySigns = keysOf(binaryFunctions).map((op) => [binaryFunctions[op].symbol, op] as const);

/** `(float)(T0)`: nvFuser's other spelling of a conversion; the scanner is before its first parenthesis. */
function parseCastInParentheses(context: OpContext, output: Tensor): Op {
  expect(context.scanner, "(");
  if (readWord(context.scanner) === "") failExpected(context.scanner, "a dtype");
  expect(context.scanner, ")");
  return cast(context, output);
}

/** `-T0;`: nvFuser's spelling of neg; the scanner is behind the sign. */
function parseNegation(context: OpContext, output: Tensor): Op {
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
