/** One container: header, statements, host units and end; behind it the sections that say what its names and axes stand for. */
import type { TensorId } from "../../ir/domain.ts";
import { makeId } from "../../support/ids.ts";
import type { HostProgram, HostUnit, Statement, UnitId } from "../nodes.ts";
import type { ReadContext } from "../syntax/context.ts";
import { inheritMeshes } from "./inherit-meshes.ts";
import { collectDefinitions, type Definitions, noDefinitions } from "../syntax/definitions.ts";
import { failAt } from "../syntax/parse-error.ts";
import { leafOf } from "../syntax/scalar.ts";
import { parseScope, type ScopeContext } from "./scope.ts";
import { atTensor, parseTensor } from "../syntax/tensor.ts";
import { parseTransforms, transformsTitle } from "./transforms.ts";
import { parseUnit } from "./unit.ts";
import {
  createScanner,
  expect,
  expectAcrossLines,
  failExpected,
  readWord,
  type Scanner,
  skipBlanks,
  skipLine,
  skipSpace,
  take,
} from "../syntax/scanner.ts";
import type { Source } from "../syntax/source.ts";
import { createStreamTable, streamsOf } from "../syntax/stream-table.ts";
import { finishUnits, type ParsedUnit } from "./unit-tables.ts";
import {
  createTensorTable,
  type DomainNotes,
  iterDomainCountOf,
  scalarCountOf,
  tensorsByNumber,
} from "../syntax/tensor-table.ts";

/** How constant roots of communications are meant: as device ids, as positions in the team, or as the dump's era has it. */
export type RootMeaning = "devices" | "positions" | "era";

export interface ParsedContainer {
  readonly program: HostProgram;
  /** The line of the header in the file, from 1. */
  readonly line: number;
  /** The line in which each statement begins. A statement that stands in a ShareMemHandles has none of its own. */
  readonly lines: ReadonlyMap<Statement, number>;
}

const end = "} // %HostIrContainer";

export function parseContainer(source: Source, roots: RootMeaning): ParsedContainer {
  const scanner = createScanner(source);
  const { definitions, notes } = readSections(source);
  const found = source.text.indexOf(end);
  const printed = found < 0 ? source.text : source.text.slice(0, found);
  const callStyle = isCallStyle(printed);
  skipBlanks(scanner);
  const column = scanner.position;
  const tensors = createTensorTable(notes);
  const loops: string[] = [];
  const context: ScopeContext = {
    scanner,
    tensors,
    streams: createStreamTable(printed, callStyle),
    names: { definitions, symbols: tensors.symbols, loops },
    loops,
    loopNames: new Set(),
    posted: new Map(),
    exprCount: 0,
    rootsAreDevices: roots === "era" ? !callStyle : roots === "devices",
    groupNumbers: null,
    lines: new Map(),
    counted: { position: 0, index: 0 },
  };
  expect(scanner, "%HostIrContainer");
  expect(scanner, "{");
  expect(scanner, "(");
  const inputs = parseSignature(context);
  expect(scanner, "->");
  expect(scanner, "(");
  const outputs = parseSignature(context);
  expect(scanner, ":");
  const body = parseScope(context, column + 2, 0);
  const units = readUnits(context);
  expectAcrossLines(scanner, end);
  const all = tensorsByNumber(tensors.byNumber);
  const program: HostProgram = {
    kind: "HostProgram",
    tensors: slicesPrintMeshes(printed) ? all : inheritMeshes(all, context.lines.keys()),
    inputs,
    outputs,
    streams: streamsOf(context.streams),
    units: unitsOf(context, units),
    body,
    iterDomainCount: iterDomainCountOf(tensors),
    scalarCount: scalarCountOf([...tensors.symbols, ...definitions.known.keys(), ...context.loopNames]),
    exprCount: context.exprCount,
  };
  return { program, line: source.lines?.[0] ?? source.firstLine, lines: context.lines };
}

/** From 2026-01 on verbs are printed as calls. */
function isCallStyle(text: string): boolean {
  return ["Wait(", "SetCurrentStream(", "Synchronize(", "GetCurrentStream()"].some((verb) => text.includes(verb));
}

/** Not before 2025-05, when the Stream axis still had one of its first names. */
function slicesPrintMeshes(text: string): boolean {
  return !/Stream(?:Idx)?\d/u.test(text);
}

/** What stands behind the container, with blank lines between. */
function readSections(source: Source): { readonly definitions: Definitions; readonly notes: DomainNotes } {
  const { text } = source;
  const found = text.indexOf(end);
  const scanner = createScanner(source);
  scanner.position = found < 0 ? text.length : found + end.length;
  let definitions = noDefinitions;
  let notes: DomainNotes = new Map();
  for (;;) {
    skipSpace(scanner);
    if (take(scanner, "Index definitions:")) {
      skipLine(scanner);
      const section = collectDefinitions(text, scanner.position);
      ({ definitions } = section);
      scanner.position = section.end;
    } else if (take(scanner, transformsTitle)) notes = parseTransforms(scanner);
    else return { definitions, notes };
  }
}

/** Inputs or outputs. Scalars are not bound by position: the run gives them by name. */
function parseSignature({ scanner, tensors }: ReadContext): readonly TensorId[] {
  const ids: TensorId[] = [];
  skipBlanks(scanner);
  if (take(scanner, ")")) return ids;
  for (;;) {
    if (atTensor(scanner)) ids.push(parseTensor(scanner, tensors).id);
    else {
      const { position } = scanner;
      const word = readWord(scanner);
      if (leafOf(word).kind !== "symbol") failExpected(scanner, "a tensor", position);
      tensors.symbols.add(word);
    }
    skipBlanks(scanner);
    if (take(scanner, ")")) return ids;
    expect(scanner, ",");
  }
}

/** Host units, in any order; before 2025-05 there may be a list of aliases too. */
function readUnits(context: ReadContext): ReadonlyMap<number, ParsedUnit> {
  const { scanner } = context;
  const units = new Map<number, ParsedUnit>();
  for (;;) {
    skipSpace(scanner);
    if (/^HostUnit\d/u.test(scanner.text.slice(scanner.position, scanner.position + 9))) parseUnit(context, units);
    else if (take(scanner, "Aliases:")) refuseAliases(scanner);
    else return units;
  }
}

function refuseAliases(scanner: Scanner): void {
  const { position } = scanner;
  expectAcrossLines(scanner, "{");
  skipSpace(scanner);
  if (take(scanner, "}")) return;
  failAt(scanner.source, position, {
    code: "dump-unsupported",
    message: "the container has aliases between tensors",
    found: "an alias",
    expected: "Aliases:{}, or no aliases",
    help: "write in place with one tensor that is both input and output",
  });
}

/** By number; numbers between that the dump does not show get units that nothing posts. */
function unitsOf({ scanner, posted }: ReadContext, units: ReadonlyMap<number, ParsedUnit>): readonly HostUnit[] {
  for (const [number, position] of posted) {
    if (units.has(number)) continue;
    failAt(scanner.source, position, {
      code: "dump-incomplete",
      message: `HostUnit${number} is posted, and the dump does not print its body`,
      expected: `"HostUnit${number}: Inputs={...} -> Outputs={...}" and its kernel behind the statements`,
      help: "pass the whole container, up to its last line",
    });
  }
  const finished = finishUnits(scanner.source, [...units.values()]);
  let count = 0;
  for (const number of units.keys()) count = Math.max(count, number + 1);
  return Array.from({ length: count }, (_, i) => finished.get(i) ?? unusedUnit(i));
}

function unusedUnit(number: number): HostUnit {
  const fusion = {
    kind: "Fusion",
    tensors: [],
    ops: [],
    inputs: [],
    outputs: [],
    iterDomainCount: 0,
    scalarCount: 0,
  } as const;
  return { id: makeId<UnitId>(number), fusion };
}
