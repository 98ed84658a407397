/**
 * Reads operations. Pretty forms are read without a grammar per op: operands, `key = value`, groups and words, up to the
 * types. What they mean, the row of the op knows.
 */
import {
  type Definitions,
  noAttributes,
  readAtom,
  readDictionary,
  readFunctionType,
  readType,
  readValue,
  type Signature,
} from "./attributes.ts";
import type { Attribute, BlockArgument, Operation, Region } from "./nodes.ts";
import {
  expect,
  expectForm,
  failExpected,
  isNext,
  nested,
  peek,
  peekWord,
  type Scanner,
  skipGroup,
  take,
  takeForm,
  unquoted,
} from "./scanner.ts";

const none: readonly never[] = [];

export function readOperation(scanner: Scanner, definitions: Definitions): Operation {
  const results = readResults(scanner);
  peek(scanner);
  const { position } = scanner;
  const quoted = takeForm(scanner, "string");
  const operation =
    quoted === ""
      ? readPretty(scanner, definitions, expectForm(scanner, "word", "an operation"))
      : readGeneric(scanner, definitions, unquoted(quoted));
  skipLocation(scanner);
  const { types, ...rest } = operation;
  return { ...rest, results, ...sides(types, results.length), position };
}

export function skipLocation(scanner: Scanner): void {
  if (peekWord(scanner) !== "loc") return;
  takeForm(scanner, "word");
  skipGroup(scanner, "(", ")");
}

/** `%0 = `, `%31:2 = `, `%values, %indices = `; none for an op without results. */
function readResults(scanner: Scanner): readonly string[] {
  if (peek(scanner) !== percent) return none;
  const results: string[] = [];
  do {
    const name = expectForm(scanner, "value", "a value such as %0");
    if (take(scanner, ":")) {
      const count = Number(expectForm(scanner, "number", "the number of results"));
      if (!(count >= 1 && count <= mostResults)) failExpected(scanner, `1 to ${mostResults} results`);
      for (let i = 0; i < count; i++) results.push(count === 1 ? name : `${name}#${i}`);
    } else results.push(name);
  } while (take(scanner, ","));
  expect(scanner, "=");
  return results;
}

const percent = 37;
const mostResults = 65_536;

type Body = Pick<Operation, "name" | "operands" | "attributes" | "items" | "regions"> & { readonly types: Signature };

/** A short form names the type of all operands and results once, or those of operands, the last of which is the result's. */
function sides(types: Signature, results: number): Pick<Operation, "operandTypes" | "resultTypes"> {
  if ("operands" in types) return { operandTypes: types.operands, resultTypes: types.results };
  const last = types.at(-1);
  if (results === 0 || last === undefined) return { operandTypes: types, resultTypes: none };
  return {
    operandTypes: types,
    resultTypes: types.length === results ? types : Array.from({ length: results }, () => last),
  };
}

function readTypes(scanner: Scanner, definitions: Definitions): Signature {
  const { text, position } = scanner;
  const end = text.indexOf("\n", position);
  const line = text.slice(position, end < 0 ? text.length : end);
  const known = definitions.signatures.get(line);
  if (known !== undefined) {
    scanner.position += line.length;
    return known;
  }
  const signature = readSignature(scanner, definitions);
  if (scanner.position === position + line.length) definitions.signatures.set(line, signature);
  return signature;
}

function readSignature(scanner: Scanner, definitions: Definitions): Signature {
  if (isNext(scanner, "(")) return readFunctionType(scanner, definitions);
  const types = [readType(scanner, definitions)];
  while (take(scanner, ",")) types.push(readType(scanner, definitions));
  if (!take(scanner, "->")) return types;
  if (!isNext(scanner, "(")) return { operands: types, results: [readType(scanner, definitions)] };
  expect(scanner, "(");
  const results = [readType(scanner, definitions)];
  while (take(scanner, ",")) results.push(readType(scanner, definitions));
  expect(scanner, ")");
  return { operands: types, results };
}

/** `"name"(%0, %1) <{properties}> ({regions}) {attributes} : (t, t) -> t` */
function readGeneric(scanner: Scanner, definitions: Definitions, name: string): Body {
  expect(scanner, "(");
  const operands: string[] = [];
  while (!take(scanner, ")")) {
    if (operands.length > 0) expect(scanner, ",");
    operands.push(expectForm(scanner, "value", "a value such as %0"));
  }
  let attributes = noAttributes;
  if (take(scanner, "<{")) {
    scanner.position -= 1;
    attributes = readDictionary(scanner, definitions);
    expect(scanner, ">");
  }
  const regions: Region[] = [];
  if (take(scanner, "(")) {
    do {
      regions.push(readRegion(scanner, definitions, none));
    } while (take(scanner, ","));
    expect(scanner, ")");
  }
  if (isNext(scanner, "{")) attributes = new Map([...attributes, ...readDictionary(scanner, definitions)]);
  expect(scanner, ":");
  return { name, operands, attributes, items: none, regions, types: readFunctionType(scanner, definitions) };
}

/** The parts of a pretty form, while it is read. */
interface Parts {
  readonly operands: string[];
  /** The initial values of a `reduce`, which follow its operands. */
  readonly initial: string[];
  readonly items: Attribute[];
  readonly regions: Region[];
  /** The block arguments of the region that follows, in the groups of the text. */
  blocks: (readonly BlockArgument[])[];
  attributes: Map<string, Attribute> | null;
}

function readPretty(scanner: Scanner, definitions: Definitions, name: string): Body {
  const parts: Parts = { operands: [], initial: [], items: [], regions: [], blocks: [], attributes: null };
  // The one op without types whose end no sign shows.
  if (name === "sdy.mesh") {
    parts.items.push(readAtom(scanner, definitions));
    expect(scanner, "=");
    parts.items.push(readAtom(scanner, definitions));
    if (isNext(scanner, "{")) readDictionary(scanner, definitions);
    return { name, operands: none, items: parts.items, regions: none, attributes: noAttributes, types: none };
  }
  while (readPart(scanner, definitions, parts));
  let types: Signature = none;
  if (take(scanner, ":")) {
    types = readTypes(scanner, definitions);
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
function readPart(scanner: Scanner, definitions: Definitions, parts: Parts): boolean {
  const code = peek(scanner);
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
      if (take(scanner, "=")) {
        addEntries(parts, [[word, readValue(scanner, definitions)]]);
      } else {
        scanner.position = start;
        parts.items.push(readAtom(scanner, definitions));
      }
      return true;
    }
  }
}

/** A dictionary of attributes, or a set such as the axes of `sdy.all_reduce {"x"} %0`. */
function readBraces(scanner: Scanner, definitions: Definitions, parts: Parts): void {
  const group = readAtom(scanner, definitions);
  if (group.kind !== "group" || group.items.length > 0) parts.items.push(group);
  else addEntries(parts, group.entries);
}

function addEntries(parts: Parts, entries: Iterable<readonly [string, Attribute]>): void {
  parts.attributes ??= new Map();
  for (const [key, value] of entries) parts.attributes.set(key, value);
}

/** Whether a `{` opens a region: an op follows, or the region is empty and the block is not. */
function isRegionNext(scanner: Scanner): boolean {
  const { position } = scanner;
  scanner.position++;
  const code = peek(scanner);
  const word = takeForm(scanner, "word");
  const isRegion =
    code === percent || code === caret || word === "return" || (word.includes(".") && !isNext(scanner, "="));
  scanner.position = position;
  return isRegion;
}

const caret = 94;

/** `(%0, %1)`, `(%1 init: %cst)`, `(%i = %0, %x = %1)`, `(%0, k = 2)`, and arguments of a block `(%a: t, %b: t)`. */
function readParentheses(scanner: Scanner, definitions: Definitions, parts: Parts): void {
  expect(scanner, "(");
  const block: BlockArgument[] = [];
  let isBlock = false;
  while (!take(scanner, ")")) {
    peek(scanner);
    const { position } = scanner;
    const name = takeForm(scanner, "value");
    if (name === "") {
      const key = expectForm(scanner, "word", "a value such as %0");
      expect(scanner, "=");
      addEntries(parts, [[key, readValue(scanner, definitions)]]);
    } else if (take(scanner, ":")) {
      isBlock = true;
      block.push(readArgumentRest(scanner, definitions, name, position));
    } else if (take(scanner, "=")) {
      parts.operands.push(expectForm(scanner, "value", "a value such as %0"));
      block.push({ name, type: { kind: "other", text: "" }, attributes: noAttributes, position });
      isBlock = true;
    } else {
      parts.operands.push(name);
      if (take(scanner, "init:")) parts.initial.push(expectForm(scanner, "value", "an initial value"));
    }
    if (!take(scanner, ",") && !isNext(scanner, ")")) failExpected(scanner, '"," or ")"');
  }
  if (isBlock) parts.blocks.push(block);
}

export function readArgumentRest(
  scanner: Scanner,
  definitions: Definitions,
  name: string,
  position: number,
): BlockArgument {
  const type = readType(scanner, definitions);
  const attributes = isNext(scanner, "{") ? readDictionary(scanner, definitions) : noAttributes;
  skipLocation(scanner);
  return { name, type, attributes, position };
}

/** `reducer(%a: t, %b: t) (%c: t, %d: t)` gives the pairs of each operand; the block takes all first ones first. */
function readBlock(scanner: Scanner, definitions: Definitions, parts: Parts): Region {
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
export function readRegion(scanner: Scanner, definitions: Definitions, given: readonly BlockArgument[]): Region {
  const start = scanner.position;
  expect(scanner, "{");
  return nested(scanner, () => {
    let own = given;
    const operations: Operation[] = [];
    while (!take(scanner, "}")) {
      const code = peek(scanner);
      if (Number.isNaN(code)) failExpected(scanner, '"}" for the "{"', start);
      if (code !== caret) {
        operations.push(readOperation(scanner, definitions));
        continue;
      }
      if (operations.length > 0) failExpected(scanner, "a region of one block: branches between blocks are not read");
      takeForm(scanner, "alias");
      if (take(scanner, "(")) own = readArguments(scanner, definitions);
      expect(scanner, ":");
    }
    return { arguments: own, operations };
  });
}

/** The rest of `(%a: t, %b: t)`, after the parenthesis. */
export function readArguments(scanner: Scanner, definitions: Definitions): readonly BlockArgument[] {
  const list: BlockArgument[] = [];
  while (!take(scanner, ")")) {
    if (list.length > 0) expect(scanner, ",");
    peek(scanner);
    const { position } = scanner;
    const name = expectForm(scanner, "value", "an argument such as %arg0");
    expect(scanner, ":");
    list.push(readArgumentRest(scanner, definitions, name, position));
  }
  return list;
}
