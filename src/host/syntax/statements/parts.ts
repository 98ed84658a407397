/**
 * The parts of a form, which is the text of a statement as data:
 *
 *   Communication <id> (type=<type>, team=<team>, [root=<root>, ]input=<input>, output=<output>, backend=<backend>)
 *
 * `<name>` is a field of the statement. `[...]` appears only if its field has a text. The rest is literal: a parser
 * accepts any blanks, or none, between its words and signs. Lines after the first are indented with the statement.
 */
import type { TensorId } from "../../../ir/domain.ts";
import type { Unfinished } from "../../../support/draft.ts";
import { invariant } from "../../../support/invariant.ts";
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

/** Whether a part begins at a position of the text. */
export type Begins = (text: string, position: number) => boolean;

export type FormPart<S> = Literal | Hole<S> | Choice<S>;

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
export interface Hole<S> {
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
export interface WordForm<S> {
  readonly word: string;
  readonly head: Hole<S> | null;
  /** The parts after the word. */
  readonly parts: readonly FormPart<S>[];
}

const pattern = /<(?<name>\w+)>|\[(?<group>[^\]]*)\]|\s*(?:[=,()]|[^\s=,()<[]+)\s*|\s+/gu;

/** The parts of a form, with one literal per word or sign. */
export function formParts<S>(text: string, holes: ReadonlyMap<string, Hole<S>>): readonly FormPart<S>[] {
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
export function merged<S>(parts: readonly FormPart<S>[]): readonly FormPart<S>[] {
  const all: FormPart<S>[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (part.kind === "literal" && last?.kind === "literal") all[all.length - 1] = literal(last.text + part.text);
    else all.push(part);
  }
  return all;
}

export function entryOf<S>(parts: readonly FormPart<S>[]): WordForm<S> {
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
export function joinedForms<S>(forms: readonly (readonly FormPart<S>[])[]): readonly FormPart<S>[] {
  const [first = [], ...others] = forms;
  if (others.length === 0) return merged(first);
  const differs = first.findIndex((part, i) => others.some((parts) => !samePart(part, parts[i])));
  return [...merged(first.slice(0, differs)), choice(forms.map((parts) => parts.slice(differs)))];
}

function samePart<S>(a: FormPart<S>, b: FormPart<S> | undefined): boolean {
  return a === b || (a.kind === "literal" && wordOf(a) === wordOf(b));
}

/** Null if a field outside `[...]` has no text. */
export function printParts<S>(
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

export function readParts<S>(parts: readonly FormPart<S>[], context: ReadContext, draft: Unfinished<S>): void {
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
