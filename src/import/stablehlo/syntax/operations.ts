/**
 * Reads operations. Pretty forms are read without a grammar per op: operands, `key = value`, groups and words, up to the
 * types. What they mean, the row of the op knows.
 */
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import {
  type AttributeAliases,
  type LineForm,
  noAttributes,
  readAtom,
  readDictionary,
  readFunctionType,
  readType,
  readAttributeValue,
  type OpSignature,
} from "./attributes.ts";
import type { Attribute, BlockArgument, Operation, OpRegion } from "./nodes.ts";
import {
  createMlirScanner,
  expectMlir,
  expectForm,
  failExpectedMlir,
  isNext,
  nested,
  peekMlir,
  peekWord,
  type MlirScanner,
  skipGroup,
  takeMlir,
  takeForm,
  takeString,
  unquoted,
} from "./scanner.ts";

const none: readonly never[] = [];

export function readOperation(scanner: MlirScanner, definitions: AttributeAliases): Operation {
  return readKnownLine(scanner, definitions) ?? readAnyOperation(scanner, definitions);
}

/** An op that is the whole line, as one that was read before; null where that cannot be seen. */
function readKnownLine(scanner: MlirScanner, definitions: AttributeAliases): Operation | null {
  peekMlir(scanner);
  const { text, position } = scanner;
  const end = text.indexOf("\n", position);
  if (end < 0 || end - position > longestLine || !endsOp(text, end)) return null;
  const values: string[] = [];
  const line = text.slice(position, end);
  const key = line.replaceAll(valueNames, (value) => {
    values.push(value);
    return anyValue;
  });
  let form = definitions.lines.get(key);
  if (form === undefined) definitions.lines.set(key, (form = formOfLine(scanner, definitions, key)));
  if (form === null) return null;
  scanner.position = end;
  const { name, attributes, items, regions, operandTypes, resultTypes } = form.op;
  const operands = form.operands.map((i) => at(values, i));
  const results = form.results.map(({ value, suffix }) => at(values, value) + suffix);
  const start = results.length === 0 ? 0 : line.length - line.slice(line.indexOf("=") + 1).trimStart().length;
  // Written out: copies of objects with unknown fields are slow, and there are as many as lines.
  return {
    name,
    operands,
    attributes,
    items,
    regions,
    results,
    operandTypes,
    resultTypes,
    position: position + start,
    like: form.op,
  };
}

const longestLine = 2048;
/** Stands for each value of a line. A bare percent sign is another text. */
const anyValue = "%0";
const valueNames = /%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?/gu;

/** Whether another op or the end of the region follows. */
function endsOp(text: string, end: number): boolean {
  let next = end;
  while (text.charCodeAt(next) <= space) next++;
  return text.charCodeAt(next) === percent || text[next] === "}";
}

const space = 32;

/** Reads a line with numbers for its values; null if it is no op, or has regions, or names in strings. */
function formOfLine({ source }: MlirScanner, definitions: AttributeAliases, key: string): LineForm | null {
  if (key.split('"').some((part, i) => i % 2 === 1 && part.includes("%"))) return null;
  let count = 0;
  const text = key.trimEnd().replaceAll(anyValue, () => `%${count++}`);
  const scanner = createMlirScanner(source.file, text);
  try {
    const op = readAnyOperation(scanner, definitions);
    if (scanner.position !== text.length || op.regions.length > 0) return null;
    const results = op.results.map((name) => {
      const [, value, suffix = ""] = /^%(\d+)(.*)$/u.exec(name) ?? [];
      return { value: Number(value), suffix };
    });
    return { op, operands: op.operands.map((name) => Number(name.slice(1))), results };
  } catch (error) {
    // The line is read again where it stands, so that the diagnostic names the place.
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function readAnyOperation(scanner: MlirScanner, definitions: AttributeAliases): Operation {
  const results = readResults(scanner);
  peekMlir(scanner);
  const { position } = scanner;
  const quoted = takeString(scanner);
  const operation =
    quoted === ""
      ? readPretty(scanner, definitions, expectForm(scanner, "word", "an operation"))
      : readGeneric(scanner, definitions, unquoted(quoted));
  skipLocation(scanner);
  const { name, operands, attributes, items, regions, types } = operation;
  const { operandTypes, resultTypes } = sides(types, results.length);
  return { name, operands, attributes, items, regions, results, operandTypes, resultTypes, position, like: null };
}

export function skipLocation(scanner: MlirScanner): void {
  if (peekWord(scanner) !== "loc") return;
  takeForm(scanner, "word");
  skipGroup(scanner, "(", ")");
}

/** `%0 = `, `%31:2 = `, `%values, %indices = `; none for an op without results. */
function readResults(scanner: MlirScanner): readonly string[] {
  if (peekMlir(scanner) !== percent) return none;
  const results: string[] = [];
  do {
    const name = expectForm(scanner, "value", "a value such as %0");
    if (takeMlir(scanner, ":")) {
      const count = Number(expectForm(scanner, "number", "the number of results"));
      if (!(count >= 1 && count <= mostResults)) failExpectedMlir(scanner, `1 to ${mostResults} results`);
      for (let i = 0; i < count; i++) results.push(count === 1 ? name : `${name}#${i}`);
    } else results.push(name);
  } while (takeMlir(scanner, ","));
  expectMlir(scanner, "=");
  return results;
}

const percent = 37;
const mostResults = 65_536;

type Body = Pick<Operation, "name" | "operands" | "attributes" | "items" | "regions"> & { readonly types: OpSignature };

/** A short form names the type of all operands and results once, or those of operands, the last of which is the result's. */
function sides(types: OpSignature, results: number): Pick<Operation, "operandTypes" | "resultTypes"> {
  if ("operands" in types) return { operandTypes: types.operands, resultTypes: types.results };
  const last = types.at(-1);
  if (results === 0 || last === undefined) return { operandTypes: types, resultTypes: none };
  return {
    operandTypes: types,
    resultTypes: types.length === results ? types : Array.from({ length: results }, () => last),
  };
}

function readSignature(scanner: MlirScanner, definitions: AttributeAliases): OpSignature {
  if (isNext(scanner, "(")) return readFunctionType(scanner, definitions);
  const types = [readType(scanner, definitions)];
  while (takeMlir(scanner, ",")) types.push(readType(scanner, definitions));
  if (!takeMlir(scanner, "->")) return types;
  if (!isNext(scanner, "(")) return { operands: types, results: [readType(scanner, definitions)] };
  expectMlir(scanner, "(");
  const results = [readType(scanner, definitions)];
  while (takeMlir(scanner, ",")) results.push(readType(scanner, definitions));
  expectMlir(scanner, ")");
  return { operands: types, results };
}

/** `"name"(%0, %1) <{properties}> ({regions}) {attributes} : (t, t) -> t` */
function readGeneric(scanner: MlirScanner, definitions: AttributeAliases, name: string): Body {
  expectMlir(scanner, "(");
  const operands: string[] = [];
  while (!takeMlir(scanner, ")")) {
    if (operands.length > 0) expectMlir(scanner, ",");
    operands.push(expectForm(scanner, "value", "a value such as %0"));
  }
  let attributes = noAttributes;
  if (takeMlir(scanner, "<{")) {
    scanner.position -= 1;
    attributes = readDictionary(scanner, definitions);
    expectMlir(scanner, ">");
  }
  const regions: OpRegion[] = [];
  if (takeMlir(scanner, "(")) {
    do {
      regions.push(readRegion(scanner, definitions, none));
    } while (takeMlir(scanner, ","));
    expectMlir(scanner, ")");
  }
  if (isNext(scanner, "{")) attributes = new Map([...attributes, ...readDictionary(scanner, definitions)]);
  expectMlir(scanner, ":");
  return { name, operands, attributes, items: none, regions, types: readFunctionType(scanner, definitions) };
}

/** The parts of a pretty form, while it is read. */
interface Parts {
  readonly operands: string[];
  /** The initial values of a `reduce`, which follow its operands. */
  readonly initial: string[];
  readonly items: Attribute[];
  readonly regions: OpRegion[];
  /** The block arguments of the region that follows, in the groups of the text. */
  blocks: (readonly BlockArgument[])[];
  attributes: Map<string, Attribute> | null;
}

function readPretty(scanner: MlirScanner, definitions: AttributeAliases, name: string): Body {
  const parts: Parts = { operands: [], initial: [], items: [], regions: [], blocks: [], attributes: null };
  // The one op without types whose end no sign shows.
  if (name === "sdy.mesh") {
    parts.items.push(readAtom(scanner, definitions));
    expectMlir(scanner, "=");
    parts.items.push(readAtom(scanner, definitions));
    if (isNext(scanner, "{")) readDictionary(scanner, definitions);
    return { name, operands: none, items: parts.items, regions: none, attributes: noAttributes, types: none };
  }
  while (readPart(scanner, definitions, parts));
  let types: OpSignature = none;
  if (takeMlir(scanner, ":")) {
    types = readSignature(scanner, definitions);
    for (;;) {
      const word = peekWord(scanner);
      if (word !== "attributes" && word !== "cond" && word !== "do" && word !== "reducer") break;
      takeForm(scanner, "word");
      while (isNext(scanner, "(")) readPart(scanner, definitions, parts);
      if (word === "attributes") addEntries(parts, readDictionary(scanner, definitions));
      else parts.regions.push(readBlock(scanner, definitions, parts));
    }
  }
  const { items, regions } = parts;
  const operands = parts.initial.length === 0 ? parts.operands : [...parts.operands, ...parts.initial];
  return { name, operands, items, regions, attributes: parts.attributes ?? noAttributes, types };
}

/** Whether there was one more part before the types. */
function readPart(scanner: MlirScanner, definitions: AttributeAliases, parts: Parts): boolean {
  const code = peekMlir(scanner);
  switch (String.fromCharCode(code)) {
    case ",":
      scanner.position++;
      return true;
    case "%":
      parts.operands.push(expectForm(scanner, "value", "a value such as %0"));
      return true;
    case "(":
      readParentheses(scanner, definitions, parts);
      return true;
    case "{":
      if (parts.blocks.length > 0 || isRegionNext(scanner)) parts.regions.push(readBlock(scanner, definitions, parts));
      else readBraces(scanner, definitions, parts);
      return true;
    case "[":
    case "<":
    case "@":
    case "#":
    case '"':
      parts.items.push(readAtom(scanner, definitions));
      return true;
    default: {
      const start = scanner.position;
      const word = takeForm(scanner, "word");
      if (word === "") return false;
      if (word === "loc") {
        scanner.position = start;
        return false;
      }
      if (takeMlir(scanner, "=")) {
        addEntries(parts, [[word, readAttributeValue(scanner, definitions)]]);
      } else {
        scanner.position = start;
        parts.items.push(readAtom(scanner, definitions));
      }
      return true;
    }
  }
}

/** A dictionary of attributes, or a set such as the axes of `sdy.all_reduce {"x"} %0`. */
function readBraces(scanner: MlirScanner, definitions: AttributeAliases, parts: Parts): void {
  const group = readAtom(scanner, definitions);
  if (group.kind !== "group" || group.items.length > 0) parts.items.push(group);
  else addEntries(parts, group.entries);
}

function addEntries(parts: Parts, entries: Iterable<readonly [string, Attribute]>): void {
  parts.attributes ??= new Map();
  for (const [key, value] of entries) parts.attributes.set(key, value);
}

/** Whether a `{` opens a region: an op follows, or the region is empty and the block is not. */
function isRegionNext(scanner: MlirScanner): boolean {
  const { position } = scanner;
  scanner.position++;
  const code = peekMlir(scanner);
  const word = takeForm(scanner, "word");
  const isRegion =
    code === percent || code === caret || word === "return" || (word.includes(".") && !isNext(scanner, "="));
  scanner.position = position;
  return isRegion;
}

const caret = 94;

/** `(%0, %1)`, `(%1 init: %cst)`, `(%i = %0, %x = %1)`, `(%0, k = 2)`, and arguments of a block `(%a: t, %b: t)`. */
function readParentheses(scanner: MlirScanner, definitions: AttributeAliases, parts: Parts): void {
  expectMlir(scanner, "(");
  const block: BlockArgument[] = [];
  let isBlock = false;
  while (!takeMlir(scanner, ")")) {
    peekMlir(scanner);
    const { position } = scanner;
    const name = takeForm(scanner, "value");
    if (name === "") {
      const key = expectForm(scanner, "word", "a value such as %0");
      expectMlir(scanner, "=");
      addEntries(parts, [[key, readAttributeValue(scanner, definitions)]]);
    } else if (takeMlir(scanner, ":")) {
      isBlock = true;
      block.push(readArgumentRest(scanner, definitions, name, position));
    } else if (takeMlir(scanner, "=")) {
      parts.operands.push(expectForm(scanner, "value", "a value such as %0"));
      block.push({ name, type: { kind: "other", text: "" }, attributes: noAttributes, position });
      isBlock = true;
    } else {
      parts.operands.push(name);
      if (takeMlir(scanner, "init:")) parts.initial.push(expectForm(scanner, "value", "an initial value"));
    }
    if (!takeMlir(scanner, ",") && !isNext(scanner, ")")) failExpectedMlir(scanner, '"," or ")"');
  }
  if (isBlock) parts.blocks.push(block);
}

export function readArgumentRest(
  scanner: MlirScanner,
  definitions: AttributeAliases,
  name: string,
  position: number,
): BlockArgument {
  const type = readType(scanner, definitions);
  const attributes = isNext(scanner, "{") ? readDictionary(scanner, definitions) : noAttributes;
  skipLocation(scanner);
  return { name, type, attributes, position };
}

/** `reducer(%a: t, %b: t) (%c: t, %d: t)` gives the pairs of each operand; the block takes all first ones first. */
function readBlock(scanner: MlirScanner, definitions: AttributeAliases, parts: Parts): OpRegion {
  const { blocks } = parts;
  const [first] = blocks;
  const argumentsOf =
    blocks.length > 1 ? (first ?? []).flatMap((_, i) => blocks.flatMap((block) => block[i] ?? [])) : (first ?? none);
  // Both regions of `while` have the same arguments.
  const isLoop = argumentsOf.some(({ type }) => type.kind === "other" && type.text === "");
  if (!isLoop) parts.blocks = [];
  return readRegion(scanner, definitions, argumentsOf);
}

/** `{ ^bb0(%a: t): ops }` */
export function readRegion(
  scanner: MlirScanner,
  definitions: AttributeAliases,
  given: readonly BlockArgument[],
): OpRegion {
  const start = scanner.position;
  expectMlir(scanner, "{");
  return nested(scanner, () => {
    let own = given;
    const operations: Operation[] = [];
    while (!takeMlir(scanner, "}")) {
      const code = peekMlir(scanner);
      if (Number.isNaN(code)) failExpectedMlir(scanner, '"}" for the "{"', start);
      if (code !== caret) {
        operations.push(readOperation(scanner, definitions));
        continue;
      }
      if (operations.length > 0)
        failExpectedMlir(scanner, "a region of one block: branches between blocks are not read");
      takeForm(scanner, "alias");
      if (takeMlir(scanner, "(")) own = readArguments(scanner, definitions);
      expectMlir(scanner, ":");
    }
    return { arguments: own, operations };
  });
}

/** The rest of `(%a: t, %b: t)`, after the parenthesis. */
export function readArguments(scanner: MlirScanner, definitions: AttributeAliases): readonly BlockArgument[] {
  const list: BlockArgument[] = [];
  while (!takeMlir(scanner, ")")) {
    if (list.length > 0) expectMlir(scanner, ",");
    peekMlir(scanner);
    const { position } = scanner;
    const name = expectForm(scanner, "value", "an argument such as %arg0");
    expectMlir(scanner, ":");
    list.push(readArgumentRest(scanner, definitions, name, position));
  }
  return list;
}
