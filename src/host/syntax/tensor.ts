/**
 * Tensors in dump text: `T2_g_float[iStreamIdx6{i0}, iS7{i6}, rS10{i4}] (DeviceMesh{0 1})`. The axes are those of the loop domain; a
 * domain that is more than that stands in the dump's transforms (parse-transforms.ts).
 */
import {
  type IterDomain,
  type MemoryType,
  plainDomain,
  type Tensor,
  type TensorDomain,
  type TensorId,
} from "../../ir/domain.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import { keysOf } from "../../support/keys-of.ts";
import { parseAxis } from "./axis.ts";
import { failAt } from "./parse-error.ts";
import { parseMesh } from "./mesh.ts";
import { expect, expectNumber, failExpected, isDigit, peek, type Scanner, skipBlanks, take } from "./scanner.ts";
import { addTensor, type DomainNote, largestNumber, type TensorTable } from "./tensor-table.ts";

const dtypeByText: ReadonlyMap<string, DType> = new Map(keysOf(dtypes).map((name) => [dtypes[name].printed, name]));

const memories: readonly (readonly [text: string, memory: MemoryType])[] = [
  ["l_", "local"],
  ["g_", "global"],
  ["sym_", "symmetric"],
];

/** Whether a tensor begins here: `T` and its number. */
export function atTensor(scanner: Scanner): boolean {
  return peek(scanner) === 84 && isDigit(scanner.text.charCodeAt(scanner.position + 1));
}

export function parseTensor(scanner: Scanner, table: TensorTable): Tensor {
  const { text, position: start } = scanner;
  if (!atTensor(scanner)) failExpected(scanner, "a tensor, such as T0_g_float[iS0{i0}]");
  const end = tensorEnd(text, start);
  const known = end < 0 ? undefined : table.byText.get(text.slice(start, end));
  if (known === undefined) return readTensor(scanner, table);
  scanner.position = end;
  return known;
}

/** Where the text of a tensor ends, with its mesh; -1 if it does not, or has positions in it. Axes hold no bracket. */
function tensorEnd(text: string, start: number): number {
  const bracket = text.indexOf("]", start) + 1;
  if (bracket === 0 || text.startsWith(" ca_pos(", bracket) || text.startsWith(" produce_pos(", bracket)) return -1;
  if (!text.startsWith(" (DeviceMesh{", bracket)) return bracket;
  const close = text.indexOf(")", bracket) + 1;
  return close === 0 ? -1 : close;
}

function readTensor(scanner: Scanner, table: TensorTable): Tensor {
  const start = scanner.position;
  scanner.position++;
  const number = expectNumber(scanner, "the number of a tensor");
  if (number > largestNumber) failNumber(scanner, start, `T${number}`);
  if (!take(scanner, "_")) failExpected(scanner, '"_" and the memory of the tensor');
  const memory = parseMemory(scanner);
  const dtype = parseDType(scanner);
  const loop = parseAxes(scanner);
  const axesEnd = scanner.position;
  skipPositions(scanner);
  const meshStart = scanner.position;
  const mesh = parseMesh(scanner, table);
  // Positions differ from place to place.
  const text = scanner.text.slice(start, axesEnd) + scanner.text.slice(meshStart, scanner.position);
  const known = table.byText.get(text);
  if (known !== undefined) return known;
  const note = table.notes.get(number);
  const domain = note === undefined ? plainDomain(loop) : notedDomain(note, loop);
  if (note === undefined) requireWhole(scanner, start, number, loop);
  const tensor: Tensor = { id: makeId<TensorId>(number), dtype, memory, domain, mesh };
  return addTensor(table, scanner.source, start, text, tensor);
}

function parseMemory(scanner: Scanner): MemoryType {
  const found = memories.find(([text]) => take(scanner, text));
  if (found !== undefined) return found[1];
  const foreign = take(scanner, "s_") ? "shared" : take(scanner, "t_") ? "tensor core" : null;
  if (foreign === null) failExpected(scanner, "the memory of the tensor: l, g or sym");
  return failAt(scanner.source, scanner.position - 2, {
    code: "dump-unsupported",
    message: `a tensor lies in ${foreign} memory`,
    expected: "l (local), g (global) or sym (symmetric)",
    help: "such tensors exist inside kernels alone; pass the dump of a host program",
  });
}

function parseDType(scanner: Scanner): DType {
  const { text, position } = scanner;
  const bracket = text.indexOf("[", position);
  const name = bracket < 0 ? "" : text.slice(position, bracket);
  const dtype = dtypeByText.get(name);
  if (dtype !== undefined) {
    scanner.position = bracket;
    return dtype;
  }
  if (!/^[\w:<>]+$/u.test(name)) failExpected(scanner, 'a dtype and "["');
  return failAt(scanner.source, position, {
    code: "dump-unsupported",
    message: `there is no dtype ${name}`,
    found: name,
    expected: [...dtypeByText.keys()].join(", "),
    help: "convert the tensor to one of these dtypes",
  });
}

function parseAxes(scanner: Scanner): readonly IterDomain[] {
  if (!take(scanner, "[")) failExpected(scanner, '"[" and the axes');
  skipBlanks(scanner);
  if (take(scanner, "]")) return [];
  const axes: IterDomain[] = [];
  for (;;) {
    const start = scanner.position;
    const axis = parseAxis(scanner);
    if (axes.some(({ id }) => id === axis.id)) {
      failAt(scanner.source, start, {
        code: "dump-contradiction",
        message: `two axes of a tensor have the number ${axis.id}`,
        expected: "a number of its own for every axis",
        help: "number the axes anew, as nvFuser does",
      });
    }
    axes.push(axis);
    skipBlanks(scanner);
    if (take(scanner, "]")) return axes;
    if (!take(scanner, ",")) failExpected(scanner, '"," or "]"');
    skipBlanks(scanner);
  }
}

/** `ca_pos( 1 )` and `produce_pos( 2 )`: where nvFuser's kernels inline a tensor. Host programs do not. */
function skipPositions(scanner: Scanner): void {
  while (take(scanner, " ca_pos(") || take(scanner, " produce_pos(")) {
    skipBlanks(scanner);
    expectNumber(scanner, "a position");
    skipBlanks(scanner);
    if (!take(scanner, ")")) failExpected(scanner, '")"');
  }
}

function notedDomain({ logical, allocation, transforms }: DomainNote, loop: readonly IterDomain[]): TensorDomain {
  const own = new Map(loop.map((axis) => [axis.id, axis]));
  // An axis that is both logical and loop is one object, as in tensors that were never printed.
  const shared = logical.map((axis) => own.get(axis.id) ?? axis);
  const plain = shared.length === loop.length && shared.every((axis, i) => axis === loop[i]);
  return {
    logical: plain ? loop : shared,
    transforms,
    loop,
    allocation: allocation?.map((axis) => own.get(axis.id) ?? axis) ?? null,
  };
}

/** Extents that round up are those of split axes, whose whole a container does not print. */
function requireWhole(scanner: Scanner, start: number, number: number, loop: readonly IterDomain[]): void {
  const split = loop.find(({ extent }) => rounds(extent));
  if (split === undefined) return;
  failAt(scanner.source, start, {
    code: "dump-incomplete",
    message: `T${number} has split axes, and the dump does not print what was split`,
    found: `an extent that rounds up, on axis number ${split.id}`,
    expected: `the logical domain of T${number} under "TransformPrinter :"`,
    help: "print the program with Braid's style 2025-10, which prints the transforms of split axes, or shape the tensor without splits",
  });
}

function rounds(extent: Scalar): boolean {
  return extent.kind === "binary" && (extent.op === "ceilDiv" || rounds(extent.lhs) || rounds(extent.rhs));
}

export function failNumber(scanner: Scanner, position: number, name: string): never {
  return failAt(scanner.source, position, {
    code: "dump-unsupported",
    message: `the number of ${name} is too large`,
    expected: `a number up to ${largestNumber}`,
    help: "number the program's tensors, streams and host units from 0",
  });
}

/** The tensors of a list that `close` ends; a comma may stand before it. */
export function parseTensorList(scanner: Scanner, table: TensorTable, close: string): readonly TensorId[] {
  const ids: TensorId[] = [];
  for (;;) {
    skipBlanks(scanner);
    if (take(scanner, close)) return ids;
    ids.push(parseTensor(scanner, table).id);
    skipBlanks(scanner);
    if (take(scanner, close)) return ids;
    expect(scanner, ",");
  }
}
