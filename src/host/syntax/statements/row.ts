/** A row defines the text of one kind of statement (parts.ts), and how each of its fields prints and parses. */
import type { TensorId } from "../../../ir/domain.ts";
import { type DumpStyle, dumpStyles } from "../../../ir/scalar/scalar.ts";
import { type Unfinished, finished, at, invariant, InvariantError, keysOf } from "../../../support/invariant.ts";
import type { PrintContext, ReadContext } from "../context.ts";
import {
  failExpected,
  isBlank,
  quotedLiteral,
  type DumpScanner,
  skipBlanks,
  skipSpace,
  take,
} from "../text/scanner.ts";

/** Prints and parses one field. */
export interface Field<V, S = object> {
  /** Null if the statement prints without the field: its `[...]` is omitted, or the next form is tried. */
  readonly print: (value: V, context: PrintContext, statement: S) => string | null;
  /** `draft` has the fields that precede this one. */
  readonly read: (context: ReadContext, draft: Unfinished<S>) => V;
  /** The value if the text omits the field. */
  readonly absent?: (context: ReadContext, draft: Unfinished<S>) => V;
  /** The value in a statement `<field> = ...` that defines `tensor`. */
  readonly defining?: (tensor: TensorId) => V;
  /** Selects a `[...]` or form that starts with the field; always true by default. */
  readonly begins?: Begins;
}

/** A part of the text that repeats or implies fields: printed from them, and checked against them when read. */
export interface Mark<S> {
  readonly print: (context: PrintContext, statement: S) => string;
  readonly read: (context: ReadContext, draft: Unfinished<S>) => void;
  readonly begins?: Begins;
}

type FieldName<S> = Exclude<keyof S & string, "kind">;

interface DatedForm {
  readonly since: DumpStyle;
  readonly text: string;
}

interface RowSpec<S> {
  /**
   * The texts of the statement. Printing takes the first whose fields all have a text; parsing takes the matching one.
   * A form with `since`, the month from which dumps have it, prints in styles from that month on, in place of the
   * others.
   */
  readonly forms: readonly (string | DatedForm)[];
  readonly fields: { readonly [K in FieldName<S>]: Field<S[K], S> };
  readonly marks?: Readonly<Record<string, Mark<S>>>;
}

export interface StatementRow<S> {
  readonly print: (statement: S, context: PrintContext, indent: string) => string;
  /** By the first word: parses the text after it. */
  readonly words: ReadonlyMap<string, (context: ReadContext) => S>;
  /** By the word after `<tensor> =`: parses the text after it. */
  readonly definitions: ReadonlyMap<string, (context: ReadContext, tensor: TensorId) => S>;
}

export function statementRow<S extends { readonly kind: string }>(kind: S["kind"], spec: RowSpec<S>): StatementRow<S> {
  const { forms, fields, marks = {} } = spec;
  const names = keysOf<FieldName<S>>(fields);
  const own = names.map((name) => holeOf<S, typeof name>(name, fields[name]));
  const holes = new Map([...own, ...Object.entries(marks).map(holeOfMark)].map((hole) => [hole.name, hole]));
  const parsed = forms.map((form) => formParts(typeof form === "string" ? form : form.text, holes));
  for (const parts of parsed) requireComplete(kind, parts, own);

  // Copies of one object share a hidden class in JavaScript engines.
  const blank: Unfinished<S> = {};
  blank.kind = kind;
  for (const name of names) blank[name] = undefined;
  const fillIns = own.flatMap(({ fillIn }) => fillIn ?? []);
  const readRest = (parts: readonly FormPart<S>[], context: ReadContext, draft: Unfinished<S>): S => {
    readParts(parts, context, draft);
    for (const fillIn of fillIns) fillIn(context, draft);
    return finished(draft);
  };
  const words = new Map<string, (context: ReadContext) => S>();
  const definitions = new Map<string, (context: ReadContext, tensor: TensorId) => S>();
  const entries = parsed.map(entryOf);
  for (const { word, head } of entries) {
    const parts = joinedForms(entries.filter((entry) => entry.word === word).map((entry) => entry.parts));
    if (head === null) words.set(word, (context) => readRest(parts, context, { ...blank }));
    else {
      definitions.set(word, (context, tensor) => {
        const draft = { ...blank };
        head.define(draft, tensor);
        return readRest(parts, context, draft);
      });
    }
  }
  const undated = parsed.filter((_, i) => typeof forms[i] === "string").map(merged);
  const printed = new Map(
    dumpStyles.map((style) => {
      const dated = parsed.filter((_, i) => isPrinted(at(forms, i), style)).map(merged);
      return [style, dated.length > 0 ? dated : undated];
    }),
  );
  return {
    print: (statement, context, indent) =>
      printFirst(printed.get(context.style) ?? undated, statement, context, indent),
    words,
    definitions,
  };
}

function isPrinted(form: string | DatedForm, style: DumpStyle): boolean {
  return typeof form !== "string" && form.since <= style;
}

function holeOf<S, K extends keyof S & string>(name: K, field: Field<S[K], S>): Hole<S> {
  const { print, read, absent, defining, begins = () => true } = field;
  return {
    kind: "hole",
    name,
    print: (context, statement) => print(statement[name], context, statement),
    read: (context, draft) => {
      draft[name] = read(context, draft);
    },
    define: (draft, tensor) => {
      draft[name] = defining?.(tensor);
    },
    fillIn:
      absent === undefined
        ? null
        : (context, draft) => {
            if (draft[name] === undefined) draft[name] = absent(context, draft);
          },
    begins,
  };
}

function holeOfMark<S>([name, mark]: readonly [string, Mark<S>]): Hole<S> {
  return { kind: "hole", name, define: () => {}, fillIn: null, begins: () => true, ...mark };
}

/** Checks that every form has a text for each field, or the field a value without one. */
function requireComplete<S>(kind: string, parts: readonly FormPart<S>[], fields: readonly Hole<S>[]): void {
  const lost = fields.filter((field) => field.fillIn === null && !parts.includes(field));
  invariant(lost.length === 0, "a form has every field that needs a text", {
    kind,
    lost: lost.map(({ name }) => name),
  });
}

function printFirst<S extends { readonly kind: string }>(
  forms: readonly (readonly FormPart<S>[])[],
  statement: S,
  context: PrintContext,
  indent: string,
): string {
  for (const parts of forms) {
    const text = printParts(parts, context, statement, indent);
    if (text !== null) return indent + text;
  }
  throw new InvariantError(`${statement.kind} has no form that prints`);
}

/*
 * The parts of a form, which is the text of a statement as data:
 *
 *   Communication <id> (type=<type>, team=<team>, [root=<root>, ]input=<input>, output=<output>, backend=<backend>)
 *
 * `<name>` is a field of the statement. `[...]` appears only if its field has a text. The rest is literal: a parser
 * accepts any blanks, or none, between its words and signs. Lines after the first are indented with the statement.
 */

/** Whether a part begins at a position of the text. */
type Begins = (text: string, position: number) => boolean;

type FormPart<S> = Literal | Hole<S> | Choice<S>;

interface Literal {
  readonly kind: "literal";
  readonly text: string;
  readonly hasBreaks: boolean;
  /** The words and signs, and whether a line break precedes each. */
  readonly tokens: readonly { readonly text: string; readonly afterBreak: boolean }[];
  /** Whether the literal ends with a line break. */
  readonly breaksAfter: boolean;
}

/** The position of a field. */
interface Hole<S> {
  readonly kind: "hole";
  readonly name: string;
  /** Null if the statement has no text for the field. */
  readonly print: (context: PrintContext, statement: S) => string | null;
  readonly read: (context: ReadContext, draft: Unfinished<S>) => void;
  /** Sets the field of a statement that defines `tensor`. */
  readonly define: (draft: Unfinished<S>, tensor: TensorId) => void;
  /** Sets the field if the text did not; null for a field that needs a text. */
  readonly fillIn: ((context: ReadContext, draft: Unfinished<S>) => void) | null;
  readonly begins: Begins;
}

/** Parsing takes the first alternative that begins here. The second alternative of a `[...]` is empty. */
interface Choice<S> {
  readonly kind: "choice";
  readonly alternatives: readonly Alternative<S>[];
}

interface Alternative<S> {
  readonly parts: readonly FormPart<S>[];
  readonly begins: Begins;
  /** The word or sign at its beginning; "" for a field. */
  readonly word: string;
}

/**
 * A form with the word that identifies it to the parser: the first word, or in `<head> = word...` the word after the
 * sign.
 */
interface WordForm<S> {
  readonly word: string;
  readonly head: Hole<S> | null;
  /** The parts after the word. */
  readonly parts: readonly FormPart<S>[];
}

const pattern = /<(?<name>\w+)>|\[(?<group>[^\]]*)\]|\s*(?:[=,()]|[^\s=,()<[]+)\s*|\s+/gu;

/** The parts of a form, with one literal per word or sign. */
function formParts<S>(text: string, holes: ReadonlyMap<string, Hole<S>>): readonly FormPart<S>[] {
  return [...text.matchAll(pattern)].map((match): FormPart<S> => {
    const { name, group } = match.groups ?? {};
    if (group !== undefined) return choice([formParts(group, holes), []]);
    if (name === undefined) return literal(match[0]);
    const hole = holes.get(name);
    invariant(hole !== undefined, "a form names fields of its statement", { text, name });
    return hole;
  });
}

function literal(text: string): Literal {
  const tokens = [...text.matchAll(/(?<space>\s*)(?<token>[=,()]|[^\s=,()]+)/gu)].map(({ groups = {} }) => ({
    text: groups["token"] ?? "",
    afterBreak: groups["space"]?.includes("\n") ?? false,
  }));
  return { kind: "literal", text, hasBreaks: text.includes("\n"), tokens, breaksAfter: /\n\s*$/u.test(text) };
}

function choice<S>(alternatives: readonly (readonly FormPart<S>[])[]): Choice<S> {
  return {
    kind: "choice",
    alternatives: alternatives.map((own) => {
      const parts = merged(own);
      const first = parts.find((part) => part.kind !== "literal" || part.tokens.length > 0);
      const word = wordOf(first);
      const begins: Begins =
        first?.kind === "hole" ? first.begins : (text, position) => text.startsWith(word, position);
      return { parts, begins, word };
    }),
  };
}

/** Joins adjacent literals, so that text with exactly the same blanks is parsed in one comparison. */
function merged<S>(parts: readonly FormPart<S>[]): readonly FormPart<S>[] {
  const all: FormPart<S>[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (part.kind === "literal" && last?.kind === "literal") all[all.length - 1] = literal(last.text + part.text);
    else all.push(part);
  }
  return all;
}

function entryOf<S>(parts: readonly FormPart<S>[]): WordForm<S> {
  const [first, sign] = parts;
  const head = first?.kind === "hole" && wordOf(sign) === "=" ? first : null;
  const [own, ...rest] = head === null ? parts : parts.slice(2);
  invariant(own?.kind === "literal", "a form begins with a word, or with a field that it defines");
  const word = wordOf(own);
  return { word, head, parts: [literal(own.text.slice(word.length)), ...rest] };
}

function wordOf<S>(part: FormPart<S> | undefined): string {
  return part?.kind === "literal" ? (part.tokens[0]?.text ?? "") : "";
}

/** One list of parts for several forms: their common prefix, then a choice between the rests. */
function joinedForms<S>(forms: readonly (readonly FormPart<S>[])[]): readonly FormPart<S>[] {
  const [first = [], ...others] = forms;
  if (others.length === 0) return merged(first);
  const differs = first.findIndex((part, i) => others.some((parts) => !samePart(part, parts[i])));
  return [...merged(first.slice(0, differs)), choice(forms.map((parts) => parts.slice(differs)))];
}

function samePart<S>(a: FormPart<S>, b: FormPart<S> | undefined): boolean {
  return a === b || (a.kind === "literal" && wordOf(a) === wordOf(b));
}

/** Null if a field outside `[...]` has no text. */
function printParts<S>(
  parts: readonly FormPart<S>[],
  context: PrintContext,
  statement: S,
  indent: string,
): string | null {
  let text = "";
  for (const part of parts) {
    if (part.kind === "literal") {
      text += part.hasBreaks ? part.text.replaceAll("\n", `\n${indent}`) : part.text;
    } else if (part.kind === "hole") {
      const own = part.print(context, statement);
      if (own === null) return null;
      text += own;
    } else {
      const [group] = part.alternatives;
      if (group !== undefined) text += printParts(group.parts, context, statement, indent) ?? "";
    }
  }
  return text;
}

function readParts<S>(parts: readonly FormPart<S>[], context: ReadContext, draft: Unfinished<S>): void {
  for (const part of parts) {
    if (part.kind === "literal") readLiteral(context.scanner, part);
    else if (part.kind === "hole") part.read(context, draft);
    else readParts(chosen(context.scanner, part), context, draft);
  }
}

function readLiteral(scanner: DumpScanner, { text, tokens, breaksAfter }: Literal): void {
  if (!take(scanner, text)) {
    for (const token of tokens) {
      if (token.afterBreak) skipSpace(scanner);
      else skipBlanks(scanner);
      if (!take(scanner, token.text) && !takeOnNextLine(scanner, token.text))
        failExpected(scanner, quotedLiteral(token.text));
    }
  }
  if (breaksAfter) skipSpace(scanner);
  else skipBlanks(scanner);
}

/** Some dumps of 2025-06 break the line before a parenthesis that closes a statement. */
function takeOnNextLine(scanner: DumpScanner, sign: string): boolean {
  const { position } = scanner;
  if (sign !== ")") return false;
  skipSpace(scanner);
  if (take(scanner, sign)) return true;
  scanner.position = position;
  return false;
}

function chosen<S>(scanner: DumpScanner, { alternatives }: Choice<S>): readonly FormPart<S>[] {
  const { text } = scanner;
  let { position } = scanner;
  while (isBlank(text.charCodeAt(position))) position++;
  for (const { begins, parts } of alternatives) if (begins(text, position)) return parts;
  skipBlanks(scanner);
  const words = alternatives.filter(({ word }) => word !== "");
  return failExpected(scanner, words.map(({ word }) => quotedLiteral(word)).join(" or "));
}
