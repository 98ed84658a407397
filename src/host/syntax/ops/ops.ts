/**
 * Computations in dump text: the output, or outputs with commas between them, then on the next line `= ` and the op. A
 * row per kind prints an op and parses it by its names. Attributes that an op does not print (the axes of a reduction,
 * the order of a permute) follow from its output.
 */
import type { Tensor } from "../../../ir/domain.ts";
import { type Op, type OpKind, outputsOf } from "../../../ir/ops/op.ts";
import type { PrintContext } from "../context.ts";
import { printTensorOf } from "../statements/fields.ts";
import {
  expectAcrossLines,
  failExpected,
  quotedLiteral,
  readWord,
  type DumpScanner,
  skipSpace,
  take,
} from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { atTensor, parseTensor } from "../values/tensor.ts";
import { sdpaBackwardSyntax, sdpaSyntax, groupedMatmulSyntax, linearSyntax, matmulSyntax } from "./contractions.ts";
import { castSyntax, readCastInParentheses, readPrefixed, reductionSyntax, unarySyntax } from "./compute.ts";
import {
  fullSyntax,
  iotaSyntax,
  randomSyntax,
  argsortSyntax,
  gatherSyntax,
  indexSelectSyntax,
  scanSyntax,
  scatterAddSyntax,
} from "./creation.ts";
import { atNumber, type OpContext, type OpReader, type OpSyntax } from "./op-syntax.ts";
import { binarySyntax, readBinary, ternarySyntax, catSyntax, expandSyntax, padSyntax, sliceSyntax } from "./shape.ts";
import { broadcastSyntax, permuteSyntax, reshapeSyntax, selectSyntax, setSyntax, squeezeSyntax } from "./views.ts";

const rows: { readonly [K in OpKind]: OpSyntax<Extract<Op, { readonly kind: K }>> } = {
  Unary: unarySyntax,
  Cast: castSyntax,
  Binary: binarySyntax,
  Ternary: ternarySyntax,
  Reduction: reductionSyntax,
  Matmul: matmulSyntax,
  Linear: linearSyntax,
  GroupedMatmul: groupedMatmulSyntax,
  Set: setSyntax,
  Permute: permuteSyntax,
  Reshape: reshapeSyntax,
  Broadcast: broadcastSyntax,
  Expand: expandSyntax,
  Cat: catSyntax,
  Pad: padSyntax,
  IndexSelect: indexSelectSyntax,
  Gather: gatherSyntax,
  ScatterAdd: scatterAddSyntax,
  Scan: scanSyntax,
  Argsort: argsortSyntax,
  Squeeze: squeezeSyntax,
  Slice: sliceSyntax,
  Select: selectSyntax,
  Full: fullSyntax,
  Iota: iotaSyntax,
  RandomBits: randomSyntax,
  Sdpa: sdpaSyntax,
  SdpaBackward: sdpaBackwardSyntax,
};

/** The text of an op, from its output on. */
export function printOp(op: Op, context: PrintContext, indent: string): string {
  const row: OpSyntax<Op> = rows[op.kind];
  const value = row.print(op, context, indent);
  const outputs = outputsOf(op).map((id) => printTensorOf(id, context));
  return `${indent}${outputs.join(`,\n${indent}`)}\n${indent}   = ${value}`;
}

const readers: ReadonlyMap<string, OpReader> = new Map(
  Object.values(rows).flatMap((row) => Object.entries(row.readers)),
);

/** A tensor at the start of a statement, and those after it with commas between them: the outputs of an op. */
export function parseOutputs({ scanner, tensors }: OpContext): readonly [Tensor, ...Tensor[]] {
  const outputs: [Tensor, ...Tensor[]] = [parseTensor(scanner, tensors)];
  while (take(scanner, ",")) {
    skipSpace(scanner);
    if (!atTensor(scanner)) failExpected(scanner, "another output of the op, such as T1_g_float[iS1{i0}]");
    outputs.push(parseTensor(scanner, tensors));
  }
  return outputs;
}

/**
 * Parses from the `=` on. `other` parses names that no op has; the scanner is then after the name, which began at
 * `start`.
 */
export function parseComputed<T>(
  context: OpContext,
  [output, ...further]: readonly [Tensor, ...Tensor[]],
  other: (name: string, start: number) => T,
): Op | T {
  const { scanner } = context;
  expectAcrossLines(scanner, "=");
  skipSpace(scanner);
  if (atTensor(scanner) || atNumber(scanner)) return readBinary(context, output);
  const start = scanner.position;
  if (scanner.text.startsWith("(", start)) return readCastInParentheses(context, output);
  if (take(scanner, "-")) return readPrefixed("neg", context, output);
  if (take(scanner, "!")) return readPrefixed("logicalNot", context, output);
  const name = readWord(scanner);
  if (name === "") failExpected(scanner, "an op");
  const reader = readers.get(name);
  if (reader === undefined) return other(name, start);
  const op = reader(further.length === 0 ? context : { ...context, further }, output, start);
  if (op.further?.length === further.length || (op.further === undefined && further.length === 0)) return op;
  return failAt(scanner.source, start, "dump-contradiction", `${name} has another number of outputs`, {
    found: String(further.length + 1),
    expected: "as many as Braid's op has",
    help: "list the outputs of the op before the =, with commas between them",
  });
}

export function failUnknownOp(scanner: DumpScanner, start: number, name: string): never {
  failAt(scanner.source, start, "dump-unsupported", `there is no op ${name}`, {
    found: quotedLiteral(name),
    expected: `one of ${[...readers.keys()].filter((known) => !known.startsWith("__")).join(", ")}`,
    help: "write the op with these; or post it in a HostUnit, which braid verify takes for any kernel",
  });
}
