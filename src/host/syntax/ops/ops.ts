/**
 * Computations in dump text: the output, then on the next line `= ` and the op. A row per kind prints an op and parses
 * it by its names. Attributes that an op does not print (the axes of a reduction, the order of a permute) follow from
 * its output.
 */
import type { Tensor } from "../../../ir/domain.ts";
import type { Op, OpKind } from "../../../ir/ops/op.ts";
import type { PrintContext } from "../context.ts";
import { printTensorOf } from "../statements/fields.ts";
import { failAt } from "../text/source.ts";
import { expectAcrossLines, failExpected, quoted, readWord, type Scanner, skipSpace, take } from "../text/scanner.ts";
import { atTensor } from "../values/tensor.ts";
import {
  binarySyntax,
  castSyntax,
  readBinary,
  readCastInParentheses,
  readNegation,
  reductionSyntax,
  unarySyntax,
} from "./compute.ts";
import { atNumber } from "./numbers.ts";
import { linearSyntax, matmulSyntax } from "./contractions.ts";
import type { OpContext, OpReader, OpSyntax } from "./op-syntax.ts";
import {
  broadcastSyntax,
  permuteSyntax,
  reshapeSyntax,
  selectSyntax,
  setSyntax,
  sliceSyntax,
  squeezeSyntax,
} from "./views.ts";

const rows: { readonly [K in OpKind]: OpSyntax<Extract<Op, { readonly kind: K }>> } = {
  Unary: unarySyntax,
  Cast: castSyntax,
  Binary: binarySyntax,
  Reduction: reductionSyntax,
  Matmul: matmulSyntax,
  Linear: linearSyntax,
  Set: setSyntax,
  Permute: permuteSyntax,
  Reshape: reshapeSyntax,
  Broadcast: broadcastSyntax,
  Squeeze: squeezeSyntax,
  Slice: sliceSyntax,
  Select: selectSyntax,
};

/** The text of an op, from its output on. */
export function printOp(op: Op, context: PrintContext, indent: string): string {
  const row: OpSyntax<Op> = rows[op.kind];
  const value = row.print(op, context, indent);
  return `${indent}${printTensorOf(op.output, context)}\n${indent}   = ${value}`;
}

const readers: ReadonlyMap<string, OpReader> = new Map(
  Object.values(rows).flatMap((row) => Object.entries(row.readers)),
);

/**
 * Parses from the `=` on. `other` parses names that no op has; the scanner is then after the name, which began at
 * `start`.
 */
export function parseComputed<T>(
  context: OpContext,
  output: Tensor,
  other: (name: string, start: number) => T,
): Op | T {
  const { scanner } = context;
  expectAcrossLines(scanner, "=");
  skipSpace(scanner);
  if (atTensor(scanner) || atNumber(scanner)) return readBinary(context, output);
  const start = scanner.position;
  if (scanner.text.startsWith("(", start)) return readCastInParentheses(context, output);
  if (take(scanner, "-")) return readNegation(context, output);
  const name = readWord(scanner);
  if (name === "") failExpected(scanner, "an op");
  const reader = readers.get(name);
  return reader === undefined ? other(name, start) : reader(context, output, start);
}

export function failUnknownOp(scanner: Scanner, start: number, name: string): never {
  failAt(scanner.source, start, {
    code: "dump-unsupported",
    message: `there is no op ${name}`,
    found: quoted(name),
    expected: `one of ${[...readers.keys()].filter((known) => !known.startsWith("__")).join(", ")}`,
    help: "remove the op from the program, or write it with ops that Braid has",
  });
}
