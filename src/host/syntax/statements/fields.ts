/** Fields that several kinds of statements share: their printers and parsers. */
import type { Tensor, TensorId } from "../../../ir/domain.ts";
import { type DumpStyle, printScalar, type Scalar } from "../../../ir/scalar/scalar.ts";
import { printTensor } from "../../../ir/print-tensor.ts";
import { makeId, at, keysOf } from "../../../support/invariant.ts";
import { backendNames, type CommunicatorBackend } from "../../collectives.ts";
import type { ExprId, StreamId } from "../../nodes.ts";
import type { PrintContext, ReadContext } from "../context.ts";
import { expectNumber, failExpected, isDigit, readWord, take } from "../text/scanner.ts";
import { devicesFirst as withDevicesFirst } from "../values/axis.ts";
import { parseNamed, parseStream } from "../values/names.ts";
import { parseScalar } from "../values/scalar.ts";
import { parseTensor, parseTensorList } from "../values/tensor.ts";
import type { Field } from "./row.ts";

export function printTensorOf(id: TensorId, context: PrintContext): string {
  return printTensor(printedTensor(id, context), context.spelling, !context.withoutMesh.has(id));
}

/** The tensor with its axes in the order in which they print. */
export function printedTensor(id: TensorId, { program, devicesFirst }: PrintContext): Tensor {
  const tensor = at(program.tensors, id);
  return devicesFirst.has(id) ? withDevicesFirst(tensor) : tensor;
}

export const tensor: Field<TensorId> = {
  print: printTensorOf,
  read: ({ scanner, tensors }) => parseTensor(scanner, tensors).id,
  defining: (id) => id,
};

/** `T0, T1, ` before a brace: nvFuser prints a comma after each. */
export const tensorList: Field<readonly TensorId[]> = {
  print: (ids, context) => ids.map((id) => `${printTensorOf(id, context)}, `).join(""),
  read: ({ scanner, tensors }) => parseTensorList(scanner, tensors),
};

/** A value that prints inline: `( i0 * i2 )`. */
export const scalar: Field<Scalar> = {
  print: (value, { spelling }) => printScalar(value, spelling),
  read: ({ scanner }) => parseScalar(scanner),
};

/** A value that prints by its name, which the index definitions define: `i84`. `what` is for diagnostics: "a peer". */
export function namedScalar(what: string): Field<Scalar> {
  return {
    print: (value, { indexText }) => indexText(value),
    read: ({ scanner, names }) => parseNamed(scanner, names, what),
  };
}

/** From then on verbs print as calls, streams without an index as addresses, and roots as positions in the team. */
export const callStyle: DumpStyle = "2026-01";

/** The number or index after `Stream `. */
export const stream: Field<StreamId> = {
  print: (id, { program, spelling, style }) => {
    const { index } = at(program.streams, id);
    if (style >= callStyle) return index === null ? `0x${id.toString(16)}` : printScalar(index, spelling);
    if (index === null) return String(id);
    // Without parentheses, a constant index would be parsed as a stream's number.
    return index.kind === "constant" ? `( ${index.value} )` : printScalar(index, spelling);
  },
  read: ({ scanner, streams }) => parseStream(scanner, streams),
};

/** The number of a communication, which Waits name. */
export const exprId: Field<ExprId> = {
  print: String,
  read: (context) => numbered(context, expectNumber(context.scanner, "the number of the communication")),
  begins: (text, position) => isDigit(text.charCodeAt(position)),
};

export function numbered(context: ReadContext, number: number): ExprId {
  context.exprCount = Math.max(context.exprCount, number + 1);
  return makeId<ExprId>(number);
}

export const flag: Field<boolean> = {
  print: String,
  read: ({ scanner }) => {
    if (take(scanner, "true")) return true;
    return take(scanner, "false") ? false : failExpected(scanner, "true or false");
  },
};

/** One of a few words, which print unchanged. */
export function word<W extends string>(words: readonly W[], expected: string = words.join(" or ")): Field<W> {
  return {
    print: (value) => value,
    read: ({ scanner }) => {
      const start = scanner.position;
      const found = readWord(scanner);
      return words.find((each) => each === found) ?? failExpected(scanner, expected, start);
    },
  };
}

/** One of the keys of a table, printed by the table's name for it. */
export function namedField<V extends string>(names: Readonly<Record<V, string>>, what: string): Field<V> {
  const values = new Map(keysOf(names).map((value) => [names[value], value]));
  return {
    print: (value) => names[value],
    read: ({ scanner }) => {
      const start = scanner.position;
      const value = values.get(readWord(scanner));
      return value ?? failExpected(scanner, `${what}: ${[...values.keys()].join(", ")}`, start);
    },
  };
}

/** A field that no text shows: it follows from those that one does. */
export function implied<V, S>(value: NonNullable<Field<V, S>["absent"]>): Field<V, S> {
  return { print: () => null, read: value, absent: value };
}

/** Dumps before 2025-02 print none: communications were NCCL's by default. */
export const backend: Field<CommunicatorBackend> = {
  ...namedField(backendNames, "a communicator backend"),
  absent: () => "nccl",
};
