/** Reads types and attributes. An attribute has no meaning here: groups, words and numbers as they stand. */
import type { Attribute, GroupOpen, Operation, TensorType, Type } from "./nodes.ts";
import {
  expectMlir,
  expectForm,
  expectString,
  failExpectedMlir,
  isNext,
  nested,
  peekMlir,
  type MlirScanner,
  skipGroup,
  takeMlir,
  takeForm,
  unquoted,
} from "./scanner.ts";

export const noAttributes: ReadonlyMap<string, Attribute> = new Map();

/** What a text defines once for all of its ops. */
export interface AttributeAliases {
  /** `#name = ..`, by name. */
  readonly aliases: Map<string, Attribute>;
  /** Types that were read, by their text. */
  readonly types: Map<string, Type>;
  /** Lines that were read, by their text without the names of values; null for those that are no op. */
  readonly lines: Map<string, LineForm | null>;
}

/** A line that is one op. A program has few that differ in more than the names of values. */
export interface LineForm {
  readonly op: Operation;
  /** Which value of the line each operand is. */
  readonly operands: readonly number[];
  /** The same of results, and what follows its name: `#1`. */
  readonly results: readonly { readonly value: number; readonly suffix: string }[];
}

const closing: { readonly [O in GroupOpen]: string } = { "[": "]", "{": "}", "<": ">", "(": ")" };

/** The types of an op: of operands and results, or as many as a short form names. */
export type OpSignature = { readonly operands: readonly Type[]; readonly results: readonly Type[] } | readonly Type[];

export function readType(scanner: MlirScanner, definitions: AttributeAliases): Type {
  peekMlir(scanner);
  const start = scanner.position;
  if (isNext(scanner, "(")) {
    readFunctionType(scanner, definitions);
    return { kind: "other", text: scanner.text.slice(start, scanner.position) };
  }
  const name = takeForm(scanner, "alias") || expectForm(scanner, "word", "a type");
  if (scanner.text[scanner.position] === "<") {
    if (name === "tensor" || name === "ranked_tensor") return readTensorType(scanner, definitions, start);
    skipGroup(scanner, "<", ">");
  }
  return { kind: "other", text: scanner.text.slice(start, scanner.position) };
}

function readTensorType(scanner: MlirScanner, { types }: AttributeAliases, start: number): Type {
  skipGroup(scanner, "<", ">");
  const text = scanner.text.slice(start, scanner.position);
  const known = types.get(text);
  if (known !== undefined) return known;
  const [, sizes = "", element = ""] = /^tensor<\s*((?:(?:\d+|\?)x)*)\s*([^,\s]+?)\s*(?:,.*)?>$/su.exec(text) ?? [];
  const shape = sizes
    .split("x")
    .slice(0, -1)
    .map((size) => (size === "?" ? null : Number(size)));
  if (element === "" || shape.some((size) => size !== null && !Number.isSafeInteger(size))) {
    failExpectedMlir(scanner, "a ranked tensor type such as tensor<4x8xf32>", start);
  }
  const type: TensorType = { kind: "tensor", shape, element };
  types.set(text, type);
  return type;
}

/** `(t, t) -> t`, `(t) -> (t, t)` */
export function readFunctionType(
  scanner: MlirScanner,
  definitions: AttributeAliases,
): { readonly operands: readonly Type[]; readonly results: readonly Type[] } {
  const operands = readTypeList(scanner, definitions);
  expectMlir(scanner, "->");
  const results = isNext(scanner, "(") ? readTypeList(scanner, definitions) : [readType(scanner, definitions)];
  return { operands, results };
}

function readTypeList(scanner: MlirScanner, definitions: AttributeAliases): readonly Type[] {
  expectMlir(scanner, "(");
  return nested(scanner, () => {
    const types: Type[] = [];
    while (!takeMlir(scanner, ")")) {
      if (types.length > 0) expectMlir(scanner, ",");
      types.push(readType(scanner, definitions));
    }
    return types;
  });
}

/** One attribute without a sign after it. */
export function readAtom(scanner: MlirScanner, definitions: AttributeAliases): Attribute {
  const code = peekMlir(scanner);
  const start = scanner.position;
  switch (String.fromCharCode(code)) {
    case "[":
      return readGroup(scanner, definitions, "[");
    case "{":
      return readGroup(scanner, definitions, "{");
    case "<":
      return readGroup(scanner, definitions, "<");
    case "(":
      return readGroup(scanner, definitions, "(");
    case '"':
      return { kind: "string", text: unquoted(expectString(scanner)) };
    case "@": {
      let name = unquoted(expectForm(scanner, "symbol", "a symbol name"));
      while (takeMlir(scanner, "::")) name += `::${unquoted(expectForm(scanner, "symbol", "a symbol name"))}`;
      return { kind: "symbol", name };
    }
    case "%":
      return { kind: "word", text: expectForm(scanner, "value", "a value such as %0") };
    case "#": {
      const name = expectForm(scanner, "alias", "an attribute").slice(1);
      if (scanner.text[scanner.position] === "<") return readNamed(scanner, definitions, name);
      const alias = definitions.aliases.get(name);
      return alias ?? { kind: "named", name, body: emptyGroup };
    }
    case "!":
      return { kind: "type", type: readType(scanner, definitions) };
    default: {
      for (const sign of ["->", ":", "?", "*", "+"]) if (takeMlir(scanner, sign)) return { kind: "word", text: sign };
      const number = takeForm(scanner, "number");
      if (number !== "") return { kind: "number", text: number };
      const word = takeForm(scanner, "word");
      if (word === "") return failExpectedMlir(scanner, "an attribute");
      if (scanner.text[scanner.position] !== "<") return { kind: "word", text: word };
      if (word !== "tensor") return readNamed(scanner, definitions, word);
      scanner.position = start;
      return { kind: "type", type: readType(scanner, definitions) };
    }
  }
}

const emptyGroup: Attribute = { kind: "group", open: "<", items: [], entries: noAttributes };

/** `dense<"0x..">` is the largest text of a file and holds nothing but a string. */
function readNamed(scanner: MlirScanner, definitions: AttributeAliases, name: string): Attribute {
  return { kind: "named", name, body: readGroup(scanner, definitions, "<") };
}

function readGroup(scanner: MlirScanner, definitions: AttributeAliases, open: GroupOpen): Attribute {
  const start = scanner.position;
  expectMlir(scanner, open);
  const close = closing[open];
  return nested(scanner, () => {
    const items: Attribute[] = [];
    let entries: Map<string, Attribute> | null = null;
    while (!takeMlir(scanner, close)) {
      if (Number.isNaN(peekMlir(scanner))) failExpectedMlir(scanner, `"${close}" for the "${open}"`, start);
      let key: string | null = null;
      let parts = readParts(scanner, definitions, close);
      for (;;) {
        // Some keys follow the part before them without a comma.
        const next = takeMlir(scanner, "=")
          ? (keyOf(parts.pop()) ?? failExpectedMlir(scanner, `"," or "${close}"`))
          : null;
        if (key !== null) (entries ??= new Map()).set(key, joined(parts));
        else if (parts.length > 0) items.push(joined(parts));
        if (next === null) break;
        key = next;
        parts = readParts(scanner, definitions, close);
      }
      if (!takeMlir(scanner, ",") && !isNext(scanner, close)) failExpectedMlir(scanner, `"," or "${close}"`);
    }
    return { kind: "group", open, items, entries: entries ?? noAttributes };
  });
}

function keyOf(attribute: Attribute | undefined): string | null {
  return attribute?.kind === "word" || attribute?.kind === "string" ? attribute.text : null;
}

/** Up to the next comma, `=` or the end of the group. */
function readParts(scanner: MlirScanner, definitions: AttributeAliases, close: string): Attribute[] {
  const parts: Attribute[] = [];
  do {
    parts.push(readAtom(scanner, definitions));
  } while (
    !isNext(scanner, ",") &&
    !isNext(scanner, close) &&
    !isNext(scanner, "=") &&
    !Number.isNaN(peekMlir(scanner))
  );
  return parts;
}

/** A type after `:` says nothing that is read. */
function joined(parts: readonly Attribute[]): Attribute {
  const [first, sign, type] = parts;
  if (first === undefined || parts.length === 1) return first ?? emptyGroup;
  const isTyped = parts.length === 3 && sign?.kind === "word" && sign.text === ":" && type !== undefined;
  return isTyped && isType(type) ? first : { kind: "sequence", parts };
}

function isType(attribute: Attribute): boolean {
  if (attribute.kind === "type") return true;
  return attribute.kind === "word" && /^(?:[su]?i\d+|b?f\d+\w*|index)$/u.test(attribute.text);
}

/** A `{..}` after an op or an argument. */
export function readDictionary(scanner: MlirScanner, definitions: AttributeAliases): ReadonlyMap<string, Attribute> {
  const group = readGroup(scanner, definitions, "{");
  if (group.kind !== "group") return noAttributes;
  const flags = group.items.flatMap((item): [string, Attribute][] => {
    const key = keyOf(item);
    return key === null ? [] : [[key, { kind: "word", text: "unit" }]];
  });
  return new Map([...group.entries, ...flags]);
}

/** An attribute after `key =` outside of a group: also `[1] x [0]`, `[b, f]x[i, o]->[b, f]`, and a type after `:`. */
export function readAttributeValue(scanner: MlirScanner, definitions: AttributeAliases): Attribute {
  const first = readAtom(scanner, definitions);
  const parts = [first];
  for (;;) {
    peekMlir(scanner);
    const isCross = /^x(?=[\s[])/u.test(scanner.text.slice(scanner.position, scanner.position + 2));
    if (isCross) scanner.position++;
    else if (first.kind !== "group" || !takeMlir(scanner, "->")) break;
    parts.push({ kind: "word", text: isCross ? "x" : "->" }, readAtom(scanner, definitions));
  }
  return parts.length === 1 ? first : { kind: "sequence", parts };
}
