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
import type { Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { makeId } from "../../support/invariant.ts";
import type { HostUnit, OpaqueBody, UnitId } from "../nodes.ts";
import type { ReadContext } from "../syntax/context.ts";
import type { OpContext } from "../syntax/ops/op-syntax.ts";
import { failUnknownOp, parseComputed, parseOutputs } from "../syntax/ops/ops.ts";
import {
  expect,
  expectAcrossLines,
  expectNumber,
  failExpected,
  isDigit,
  readWord,
  type DumpScanner,
  skipSpace,
  take,
} from "../syntax/text/scanner.ts";
import { failAt, kernelEnd, type DumpSource, transformsTitle } from "../syntax/text/source.ts";
import { parseTransforms } from "../syntax/transforms.ts";
import { noDefinitions } from "../syntax/values/names.ts";
import {
  createTensorTable,
  iterDomainCountOf,
  largestNumber,
  scalarCountOf,
  tensorsByNumber,
  type TensorTable,
} from "../syntax/values/tensor-table.ts";
import { atTensor, failNumber, parseTensor, parseTensorList } from "../syntax/values/tensor.ts";

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
function atUnit(scanner: DumpScanner): boolean {
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
  if (/^ *\[\.\.\.\]/u.test(scanner.text.slice(scanner.position, scanner.position + 16)))
    failAbridged(scanner, start, number);
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
    if (take(scanner, title)) parseListed(scanner, tensors);
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
export function unitNotes(scanner: DumpScanner): ReturnType<typeof parseTransforms> {
  const { text, position } = scanner;
  const close = text.indexOf(kernelEnd, position);
  const title = text.slice(position, close < 0 ? text.length : close).indexOf(`\n${transformsTitle}`);
  if (title < 0) return new Map();
  return parseTransforms({ ...scanner, position: position + title + transformsTitle.length + 1 });
}

/** A list of inputs or outputs, one per line. */
export function parseListed(scanner: DumpScanner, tensors: TensorTable): readonly Tensor[] {
  const listed: Tensor[] = [];
  for (;;) {
    skipSpace(scanner);
    if (!atTensor(scanner)) return listed;
    listed.push(parseTensor(scanner, tensors));
    // `, float` after it, of an older nvFuser.
    if (take(scanner, ",")) {
      skipSpace(scanner);
      readWord(scanner);
    }
  }
}

/** `starts`: gains the position at which each op starts. */
export function parseOps(context: OpContext, starts: number[] = []): readonly Op[] {
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
    starts.push(scanner.position);
    ops.push(parseOp(context));
  }
}

function parseOp(context: OpContext): Op {
  return parseComputed(context, parseOutputs(context), (name, start) => failUnknownOp(context.scanner, start, name));
}

function failAbridged({ source }: DumpScanner, position: number, number: number): never {
  failAt(source, position, "dump-incomplete", `the body of HostUnit${number} is left out`, {
    found: "[...]",
    expected: "its inputs, outputs and %kernel",
    help: "pass what nvFuser printed, not an abridged copy of it",
  });
}

function failTwice({ source }: DumpScanner, position: number, number: number): never {
  failAt(source, position, "dump-contradiction", `HostUnit${number} has two bodies`, {
    expected: "one body per host unit",
    help: "number the host units, or remove the second body",
  });
}

function failMissing({ source }: DumpScanner, position: number, number: number): never {
  failAt(source, position, "dump-incomplete", `HostUnit${number} is posted, and the dump does not print its body`, {
    expected: `"HostUnit${number}: Inputs={...} -> Outputs={...}" and its kernel after the statements`,
    help: "pass the whole container, up to its last line",
  });
}

// The tables of host units. Tensor numbers are indices into a unit's table. A lowered program numbers the tensors of
// all its units consecutively, so one table per unit would take quadratic space. Units that do not contradict one
// another share a table.

interface ParsedUnit {
  readonly id: UnitId;
  readonly tensors: TensorTable;
  readonly inputs: HostUnit["fusion"]["inputs"];
  readonly outputs: HostUnit["fusion"]["outputs"];
  readonly ops: readonly Op[];
  readonly opaque: OpaqueBody | null;
  /** Where its body begins. */
  readonly position: number;
}

/** The largest number of unused entries, in all tables together. */
const mostUnused = 1_000_000;

/** The units by number. A number that the dump does not show gets an empty unit, which nothing posts. */
function finishUnits(source: DumpSource, units: readonly ParsedUnit[]): readonly HostUnit[] {
  const shared = new Map<number, { readonly tensor: Tensor; readonly text: string }>();
  const sharing = new Set<ParsedUnit>();
  for (const unit of units) {
    const { byNumber } = unit.tensors;
    const fits = [...byNumber].every(([number, { text }]) => (shared.get(number)?.text ?? text) === text);
    if (!fits) continue;
    for (const [number, met] of byNumber) shared.set(number, met);
    sharing.add(unit);
  }
  const common = tensorsByNumber(shared);
  const finished = new Map<number, HostUnit>();
  let unused = 0;
  let count = 0;
  for (const unit of units) {
    const { byNumber } = unit.tensors;
    const tensors = sharing.has(unit) ? common : tensorsByNumber(byNumber);
    if (tensors !== common) unused += tensors.length - byNumber.size;
    if (unused > mostUnused) failUnused(source, unit);
    finished.set(unit.id, finishUnit(unit, tensors));
    count = Math.max(count, unit.id + 1);
  }
  return Array.from({ length: count }, (_, i) => finished.get(i) ?? unusedUnit(i));
}

function finishUnit(
  { id, inputs, outputs, ops, opaque, tensors: own }: ParsedUnit,
  tensors: readonly Tensor[],
): HostUnit {
  const iterDomainCount = iterDomainCountOf(own);
  const scalarCount = scalarCountOf(own.symbols);
  const fusion: HostUnit["fusion"] = { kind: "Fusion", tensors, ops, inputs, outputs, iterDomainCount, scalarCount };
  return opaque === null ? { id, fusion } : { id, fusion, opaque };
}

function unusedUnit(number: number): HostUnit {
  const nothing = { tensors: [], ops: [], inputs: [], outputs: [], iterDomainCount: 0, scalarCount: 0 };
  return { id: makeId<UnitId>(number), fusion: { kind: "Fusion", ...nothing } };
}

function failUnused(source: DumpSource, { id, position }: ParsedUnit): never {
  failAt(source, position, {
    code: "dump-unsupported",
    message: `the tensors of HostUnit${id} and of earlier units have numbers that are too large`,
    found: `more than ${mostUnused} numbers that no tensor has`,
    expected: "tensors with consecutive numbers",
    help: "number the tensors of each host unit from 0",
  });
}

// The aliases of a container, which dumps before 2025-05 print after the statements: tensors that share the memory of
// another, such as an output that is written in place of an input. Each is read as the tensor whose memory it has.
//
//   Aliases:{
//     T1_g_float[iS2{4}, iS3{8}] -> T0_g_float[iS0{4}, iS1{8}]
//   }

const section = /^[^\S\n]*Aliases:\s*\{(?:\s*\}|(?<list>(?:\n[^\S\n]*(?:T\d[^\n]*)?)+?)\n[^\S\n]*\})/mu;
const pair = /T(?<alias>\d{1,9})(?!\d)[^\n]*? -> T(?<tensor>\d{1,9})(?!\d)/gu;

/** For each alias the number of the tensor whose memory it has. */
export function readAliases(source: DumpSource): ReadonlyMap<number, number> {
  const aliases = new Map<number, number>();
  const found = section.exec(source.text);
  for (const { index, groups = {} } of (found?.groups?.["list"] ?? "").matchAll(pair)) {
    const [alias, tensor] = [Number(groups["alias"]), Number(groups["tensor"])];
    let owner = tensor;
    for (let next = aliases.get(owner); next !== undefined; next = aliases.get(owner)) owner = next;
    if (owner === alias) failCircle(source, (found?.index ?? 0) + index, alias);
    aliases.set(alias, owner);
  }
  // One that became an alias later shares the memory of another.
  return new Map([...aliases].map(([alias, tensor]) => [alias, aliases.get(tensor) ?? tensor]));
}

/** Steps over the section if it stands here. */
function skipAliases(scanner: DumpScanner): boolean {
  const { text, position } = scanner;
  if (!text.startsWith("Aliases:", position)) return false;
  const found = section.exec(text.slice(position));
  if (found?.index !== 0) failExpected(scanner, '"Aliases:{", pairs of tensors with "->" between, and "}"');
  scanner.position = position + found[0].length;
  return true;
}

function failCircle(source: DumpSource, position: number, alias: number): never {
  failAt(source, position, "dump-contradiction", `T${alias} has the memory of itself`, {
    expected: "aliases of other tensors",
    help: "correct the aliases",
  });
}
