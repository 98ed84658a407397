/**
 * Parses one container: inputs and outputs, statements, host units, and the sections after it that define its names and
 * axes.
 */
import {
  type Tensor,
  type TensorId,
  allocationSize,
  type IterDomain,
  type IterDomainId,
  withoutReductions,
} from "../../ir/domain.ts";
import { at, makeId } from "../../support/invariant.ts";
import type { HirAliasSelect, HostProgram, Statement, Allocate, ForLoop, ShardByStream } from "../nodes.ts";
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
import { createSplitReading, type SplitReading } from "../syntax/values/split-axes.ts";
import { createTensorTable, iterDomainCountOf, scalarCountOf, tensorsByNumber } from "../syntax/values/tensor-table.ts";
import { atTensor, failEra, parseTensor } from "../syntax/values/tensor.ts";
import { bodyColumn, parseScope, type ScopeContext } from "./scope.ts";
import { parseUnits, readAliases, unitTable } from "./units.ts";
import { type Op, renamedOp } from "../../ir/ops/op.ts";
import { isOp, walk, writesOf } from "../traverse.ts";

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

// What goes without saying in old dumps: words of later ones, meshes, allocations, and chunks that a loop works on.

/** Before September 2024 (#2889) tensors have no dtype, and communications say `Input=` and `Output=`. */
function inLaterWords(source: DumpSource): DumpSource {
  if (!/\bT\d+_[lg]\[/u.test(source.text)) return source;
  const text = source.text.replaceAll(/\b(?:Input|Output)=(?=T\d)/gu, (word) => word.toLowerCase());
  return { ...source, text };
}

/**
 * What goes without saying in such a dump: tensors without a mesh are on all devices that the others name, and
 * communications allocate their outputs.
 */
function withUnprinted({ tensors, inputs, body, ...program }: HostProgram): HostProgram {
  const [mesh = null] = tensors
    .flatMap((tensor) => tensor.mesh ?? [])
    .toSorted((a, b) => b.devices.length - a.devices.length);
  const placed = tensors.map((tensor) => ({ ...tensor, mesh: tensor.mesh ?? mesh }));
  const bound = new Set(inputs);
  const allocations: Allocate[] = [];
  for (const statement of walk(body)) {
    const writes = writesOf(statement);
    const isPosted = statement.kind === "Communication";
    for (const tensor of isPosted ? writes.filter((each) => !bound.has(each)) : []) {
      allocations.push(allocationOf(at(placed, tensor)));
    }
    for (const tensor of writes) bound.add(tensor);
  }
  const allocated = new Set(allocations.map(({ tensor }) => tensor));
  return {
    ...program,
    tensors: placed.map((tensor) => (allocated.has(tensor.id) ? { ...tensor, memory: "global" } : tensor)),
    inputs,
    body: [...allocations, ...body],
  };
}

/**
 * Before nvFuser had ShardByStream (2025-11), an op in a loop read and wrote the chunks of the tensors that are cut by a
 * Stream axis, without a statement that says it. An output of the program that is written so is allocated before.
 */
function withChunks(program: HostProgram, splits: SplitReading | null): HostProgram {
  if (splits === null || [...walk(program.body)].some(({ kind }) => kind === "ShardByStream")) return program;
  const tensors = [...program.tensors];
  const allocated: Allocate[] = [];
  let axes: number = program.iterDomainCount;
  const viewOf = (tensor: Tensor, cut: Cut, index: ForLoop["index"]): ShardByStream => {
    const renumbered = new Map<IterDomainId, IterDomain>();
    const own = (axis: IterDomain): IterDomain => {
      const known = renumbered.get(axis.id) ?? { ...axis, id: makeId<IterDomainId>(axes++) };
      renumbered.set(axis.id, known);
      return known;
    };
    const { logical, loop } = tensor.domain;
    const axis = withoutReductions(logical).findIndex(({ id }) => id === cut.whole);
    const chunk = withoutReductions(logical).map((each) => own(each.id === cut.whole ? cut.inner : each));
    const domain = { logical: chunk, loop: withoutReductions(loop).map(own), transforms: [], allocation: null };
    const output = makeId<TensorId>(tensors.length);
    tensors.push({ ...tensor, id: output, memory: "local", domain });
    return { kind: "ShardByStream", input: tensor.id, output, axis, parts: cut.outer.extent, index, swizzled: false };
  };
  const inChunks = (op: Op, index: ForLoop["index"]): readonly Statement[] => {
    const views = new Map<TensorId, ShardByStream>();
    for (const id of new Set([...op.inputs, op.output])) {
      const tensor = at(tensors, id);
      const cut = cutOf(tensor);
      if (cut === null) continue;
      views.set(id, viewOf(tensor, cut, index));
      if (id !== op.output || program.inputs.includes(id) || allocated.some((each) => each.tensor === id)) continue;
      allocated.push(allocationOf(tensor));
    }
    return [...views.values(), renamedOp(op, (id) => views.get(id)?.output ?? id)];
  };
  const body = program.body.map((statement): Statement => {
    if (statement.kind !== "ForLoop") return statement;
    const inside = statement.body.flatMap((each) => (isOp(each) ? inChunks(each, statement.index) : [each]));
    return { ...statement, body: inside };
  });
  if (tensors.length === program.tensors.length) return program;
  return { ...program, tensors, body: [...allocated, ...body], iterDomainCount: axes };
}

function allocationOf(tensor: Tensor): Allocate {
  const size = allocationSize(tensor);
  return { kind: "Allocate", tensor: tensor.id, memory: "global", size, zeroInit: false, fresh: false };
}

interface Cut {
  readonly whole: IterDomainId;
  readonly outer: IterDomain;
  readonly inner: IterDomain;
}

/** How a Stream axis cuts the tensor; null if none does. */
function cutOf({ domain: { loop, transforms } }: Tensor): Cut | null {
  for (const each of transforms) {
    const outer = each.kind === "split" ? loop.find(({ id }) => id === each.outer) : undefined;
    const inner = each.kind === "split" ? loop.find(({ id }) => id === each.inner) : undefined;
    if (each.kind !== "split" || outer?.parallelType !== "Stream" || inner === undefined) continue;
    return { whole: each.input, outer, inner };
  }
  return null;
}
