/**
 * The host units of a container. Each prints its body, a Fusion with separate tensors:
 *
 *   HostUnit0: Inputs={T0_g_float[iS0{i0}], } -> Outputs={T1_g_float[iS1{i0}], }Inputs:
 *     T0_g_float[iS0{i0}]
 *   Outputs:
 *     T1_g_float[iS1{i0}]
 *
 *   %kernel {
 *   T1_g_float[iS1{i0}]
 *      = relu(T0_g_float[iS0{i0}]);
 *   } // %kernel
 */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { Op } from "../../ir/ops/op.ts";
import { makeId } from "../../support/ids.ts";
import type { HostUnit, UnitId } from "../nodes.ts";
import type { ReadContext } from "../syntax/context.ts";
import { noDefinitions } from "../syntax/values/names.ts";
import {
  expect,
  expectAcrossLines,
  expectNumber,
  isDigit,
  type Scanner,
  skipSpace,
  take,
} from "../syntax/text/scanner.ts";
import { kernelEnd, transformsTitle } from "../syntax/sections.ts";
import { failAt } from "../syntax/text/source.ts";
import { atTensor, failNumber, parseTensor, parseTensorList } from "../syntax/values/tensor.ts";
import { createTensorTable, largestNumber, type TensorTable } from "../syntax/values/tensor-table.ts";
import type { OpContext } from "../syntax/ops/op-syntax.ts";
import { failUnknownOp, parseComputed, parseOutputs } from "../syntax/ops/ops.ts";
import { parseTransforms } from "../syntax/transforms.ts";
import { skipAliases } from "./aliases.ts";
import { finishUnits, type ParsedUnit } from "./unit-tables.ts";

const unitName = "HostUnit";

/** Parses the units after the statements, in any order. */
export function parseUnits(context: ReadContext): ReadonlyMap<number, ParsedUnit> {
  const { scanner } = context;
  const units = new Map<number, ParsedUnit>();
  while (atUnit(scanner)) {
    const start = scanner.position;
    scanner.position += unitName.length;
    const number = expectNumber(scanner, "the number of a host unit");
    if (number > largestNumber) failNumber(scanner, start, `HostUnit${number}`);
    if (units.has(number)) failTwice(scanner, start, number);
    units.set(number, parseUnit(context, number, start));
  }
  return units;
}

/** The units by number. Throws `dump-incomplete` if the body of a posted unit is missing. */
export function unitTable(
  { scanner, posted }: ReadContext,
  units: ReadonlyMap<number, ParsedUnit>,
): readonly HostUnit[] {
  for (const [number, position] of posted) if (!units.has(number)) failMissing(scanner, position, number);
  return finishUnits(scanner.source, [...units.values()]);
}

/** Skips blanks, line breaks and the list of aliases. Returns whether a unit follows. */
function atUnit(scanner: Scanner): boolean {
  for (;;) {
    skipSpace(scanner);
    const { text, position } = scanner;
    if (!skipAliases(scanner))
      return text.startsWith(unitName, position) && isDigit(text.charCodeAt(position + unitName.length));
  }
}

/** Parses the rest of a unit, after its number. The container's meshes are shared. */
function parseUnit({ scanner, tensors: { meshes } }: ReadContext, number: number, start: number): ParsedUnit {
  const tensors = createTensorTable(unitNotes(scanner), meshes);
  const context: OpContext = {
    scanner,
    tensors,
    names: { definitions: noDefinitions, symbols: tensors.symbols, loops: [] },
  };
  expect(scanner, ":");
  expect(scanner, "Inputs={");
  const inputs = parseTensorList(scanner, tensors);
  expect(scanner, "}");
  expect(scanner, "->");
  expect(scanner, "Outputs={");
  const outputs = parseTensorList(scanner, tensors);
  expect(scanner, "}");
  // The lists once more, which dumps of 2024 do not have.
  for (const title of ["Inputs:", "Outputs:"]) {
    skipSpace(scanner);
    if (take(scanner, title)) skipListed(scanner, tensors);
  }
  expectAcrossLines(scanner, "%kernel");
  expect(scanner, "{");
  const { ops, opaque } = parseKernel(context);
  return { id: makeId<UnitId>(number), tensors, inputs, outputs, ops, opaque, position: start };
}

/** The ops of a kernel, or its text if it has something that Braid lacks. */
function parseKernel(context: OpContext): Pick<ParsedUnit, "ops" | "opaque"> {
  const { scanner } = context;
  const start = scanner.position;
  const close = scanner.text.indexOf(kernelEnd, start);
  try {
    return { ops: parseOps(context), opaque: null };
  } catch (error) {
    const isUnknown =
      error instanceof DiagnosticError && error.diagnostics.every(({ code }) => code === "dump-unsupported");
    if (!isUnknown || close < 0) throw error;
    const op = opAt(scanner.text.slice(start, close), scanner.position - start);
    scanner.position = close + kernelEnd.length;
    return { ops: [], opaque: { op, lines: scanner.text.slice(start, close).split("\n").slice(1, -1) } };
  }
}

/** The name of the op in whose statement the position is: what stands after `=`. */
function opAt(kernel: string, position: number): string {
  const start = Math.max(0, kernel.slice(0, position).lastIndexOf("\n   = "));
  const [, name, sign] = /^\n {3}= (?:(?<name>[\w.]+)\(|[^\n]*\n {3}(?<sign>\S+) )?/u.exec(kernel.slice(start)) ?? [];
  return name ?? sign ?? "an op";
}

/** The transforms are at the end of the kernel, and are read first. */
function unitNotes(scanner: Scanner): ReturnType<typeof parseTransforms> {
  const { text, position } = scanner;
  const close = text.indexOf(kernelEnd, position);
  const title = text.slice(position, close < 0 ? text.length : close).indexOf(`\n${transformsTitle}`);
  if (title < 0) return new Map();
  return parseTransforms({ ...scanner, position: position + title + transformsTitle.length + 1 });
}

/** Skips the second list of the inputs or outputs, one per line. */
function skipListed(scanner: Scanner, tensors: TensorTable): void {
  for (;;) {
    skipSpace(scanner);
    if (!atTensor(scanner)) return;
    parseTensor(scanner, tensors);
  }
}

function parseOps(context: OpContext): readonly Op[] {
  const { scanner } = context;
  const ops: Op[] = [];
  for (;;) {
    skipSpace(scanner);
    if (take(scanner, kernelEnd)) return ops;
    if (take(scanner, transformsTitle)) {
      parseTransforms(scanner);
      expectAcrossLines(scanner, kernelEnd);
      return ops;
    }
    ops.push(parseOp(context));
  }
}

function parseOp(context: OpContext): Op {
  return parseComputed(context, parseOutputs(context), (name, start) => failUnknownOp(context.scanner, start, name));
}

function failTwice({ source }: Scanner, position: number, number: number): never {
  failAt(source, position, {
    code: "dump-contradiction",
    message: `HostUnit${number} has two bodies`,
    expected: "one body per host unit",
    help: "number the host units, or remove the second body",
  });
}

function failMissing({ source }: Scanner, position: number, number: number): never {
  failAt(source, position, {
    code: "dump-incomplete",
    message: `HostUnit${number} is posted, and the dump does not print its body`,
    expected: `"HostUnit${number}: Inputs={...} -> Outputs={...}" and its kernel after the statements`,
    help: "pass the whole container, up to its last line",
  });
}
