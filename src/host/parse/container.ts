/**
 * Parses one container: inputs and outputs, statements, host units, and the sections after it that define its names and
 * axes.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import type { HirAliasSelect, HostProgram, Statement } from "../nodes.ts";
import type { ReadContext } from "../syntax/context.ts";
import {
  createDumpScanner,
  expect,
  expectAcrossLines,
  failExpected,
  readWord,
  type DumpScanner,
  skipBlanks,
  skipLine,
  skipSpace,
  take,
} from "../syntax/text/scanner.ts";
import {
  containerEnd,
  containerTitle,
  definitionsTitle,
  type DumpSource,
  transformsTitle,
} from "../syntax/text/source.ts";
import { parseTransforms } from "../syntax/transforms.ts";
import type { DomainNotes } from "../syntax/values/domain-notes.ts";
import {
  collectDefinitions,
  createStreamTable,
  type IndexDefinitions,
  noDefinitions,
  streamsOf,
} from "../syntax/values/names.ts";
import { leafOf } from "../syntax/values/scalar.ts";
import { createSplitReading } from "../syntax/values/split-axes.ts";
import { createTensorTable, iterDomainCountOf, scalarCountOf, tensorsByNumber } from "../syntax/values/tensor-table.ts";
import { atTensor, failEra, parseTensor } from "../syntax/values/tensor.ts";
import { bodyColumn, parseScope, type ScopeContext } from "./scope.ts";
import { parseUnits, readAliases, unitTable } from "./units.ts";
import { inLaterWords, withChunks, withUnprinted } from "./unprinted.ts";

/**
 * The meaning of a constant root of a communication: a device id, a position in the team, or whichever the dump's era
 * prints.
 */
export type RootMeaning = "devices" | "positions" | "era";

export interface ParsedContainer {
  readonly program: HostProgram;
  /** The line of the header in the file, from 1. */
  readonly line: number;
  /** The line in which each statement begins. Statements inside a ShareMemHandles have none. */
  readonly lines: ReadonlyMap<Statement, number>;
}

export function parseContainer(given: DumpSource, roots: RootMeaning): ParsedContainer {
  const source = inLaterWords(given);
  const scanner = createDumpScanner(source);
  const { definitions, notes } = readSections(source);
  const found = source.text.indexOf(containerEnd);
  const printed = found < 0 ? source.text : source.text.slice(0, found);
  const callStyle = isCallStyle(printed);
  const loops: string[] = [];
  const splits = createSplitReading(source.text, loops);
  const tensors = createTensorTable(notes, new Map(), readAliases(source), splits);
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
  skipBlanks(scanner);
  const column = scanner.position;
  expect(scanner, containerTitle);
  if (atDraft(scanner)) failEra(scanner);
  expect(scanner, "(");
  const inputs = parseSignature(context);
  expect(scanner, "->");
  expect(scanner, "(");
  const outputs = parseSignature(context);
  expect(scanner, ":");
  const body = parseScope(context, bodyColumn(scanner, column), 0);
  const units = parseUnits(context);
  expectAcrossLines(scanner, containerEnd);
  const all = tensorsByNumber(tensors.byNumber);
  // Dumps before 2025-05 print no mesh on slices. They print a Stream axis by one of its first names.
  const program: HostProgram = {
    kind: "HostProgram",
    tensors: !/Stream(?:Idx)?\d/u.test(printed) ? all : inheritMeshes(all, context.lines.keys()),
    inputs,
    outputs,
    streams: streamsOf(context.streams),
    units: unitTable(context, units),
    body,
    iterDomainCount: iterDomainCountOf(tensors),
    scalarCount: scalarCountOf([...tensors.symbols, ...definitions.known.keys(), ...context.loopNames]),
    exprCount: context.exprCount,
  };
  return {
    program: source === given ? withChunks(program, splits) : withUnprinted(program),
    line: source.lines?.[0] ?? source.firstLine,
    lines: context.lines,
  };
}

/** Drafts of 2024 have a line `HOST IRS: (...) -> (...)` after the title. */
function atDraft({ text, position }: DumpScanner): boolean {
  return /^\s*HOST (?:IRS|FUSION)\b/u.test(text.slice(position, position + 40));
}

/** Dumps from 2026-01 on print verbs as calls. */
function isCallStyle(text: string): boolean {
  return ["Wait(", "SetCurrentStream(", "Synchronize(", "GetCurrentStream()"].some((verb) => text.includes(verb));
}

/**
 * Gives slices the meshes of the tensors that they view, if no slice has a mesh. Without a mesh they would be on device
 * 0 only.
 */
function inheritMeshes(tensors: readonly Tensor[], statements: Iterable<Statement>): readonly Tensor[] {
  const slices = [...statements].filter(
    (statement): statement is HirAliasSelect => statement.kind === "HirAliasSelect",
  );
  if (slices.some(({ output }) => at(tensors, output).mesh !== null)) return tensors;
  const complete: Tensor[] = [...tensors];
  for (const { input, output } of slices) {
    complete[output] = { ...at(complete, output), mesh: at(complete, input).mesh };
  }
  return complete;
}

/** The sections after the container, with blank lines between. */
function readSections(source: DumpSource): { readonly definitions: IndexDefinitions; readonly notes: DomainNotes } {
  const { text } = source;
  const found = text.indexOf(containerEnd);
  const scanner = createDumpScanner(source);
  scanner.position = found < 0 ? text.length : found + containerEnd.length;
  let definitions = noDefinitions;
  let notes: DomainNotes = new Map();
  for (;;) {
    skipSpace(scanner);
    if (take(scanner, definitionsTitle)) {
      skipLine(scanner);
      const section = collectDefinitions(text, scanner.position);
      ({ definitions } = section);
      scanner.position = section.end;
    } else if (take(scanner, transformsTitle)) notes = parseTransforms(scanner);
    else return { definitions, notes };
  }
}

/** Inputs or outputs. Scalars among them are skipped: the run passes them by name, not by position. */
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
