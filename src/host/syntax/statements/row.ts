/** A row defines the text of one kind of statement (parts.ts), and how each of its fields prints and parses. */
import type { TensorId } from "../../../ir/domain.ts";
import { type DumpStyle, dumpStyles } from "../../../ir/print-style.ts";
import { type Unfinished, finished } from "../../../support/draft.ts";
import { at, invariant, InvariantError } from "../../../support/invariant.ts";
import { keysOf } from "../../../support/is-one-of.ts";
import type { PrintContext, ReadContext } from "../context.ts";
import {
  type Begins,
  entryOf,
  type Hole,
  joinedForms,
  merged,
  type FormPart,
  formParts,
  printParts,
  readParts,
} from "./parts.ts";

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
