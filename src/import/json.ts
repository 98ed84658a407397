/** Values of a JSON document, or of one like it, with the path that leads to them, for messages: `graph_module.graph.nodes[3].target`. */
import type { DiagnosticCode } from "../diagnostics/codes.ts";
import { fail } from "../diagnostics/diagnostic.ts";

/** Which document of which file, and what to say of a wrong one. */
export interface Document {
  readonly path: string;
  /** The part of the file; null for the whole. */
  readonly entry: string | null;
  readonly invalid: { readonly code: DiagnosticCode; readonly message: string; readonly help: string };
}

/** A value, and how it was reached. */
export interface Json {
  readonly value: unknown;
  readonly document: Document;
  readonly parent: Json | null;
  readonly key: string | number;
}

function pathText({ parent, key }: Json): string {
  if (parent === null) return "";
  const before = pathText(parent);
  if (typeof key === "number") return `${before}[${key}]`;
  return before === "" ? key : `${before}.${key}`;
}

/** `model.pt2: models/model.json: graph_module.graph.nodes[3]`. */
export function jsonPlaceText(json: Json): string {
  const { path, entry } = json.document;
  return [path, entry ?? "", pathText(json)].filter((part) => part !== "").join(": ");
}

/** Throws the diagnostic of the document. */
export function wrongValue(json: Json, expected: string): never {
  const { code, message, help } = json.document.invalid;
  const place = { kind: "file", path: jsonPlaceText(json) } as const;
  return fail({ code, message, place, found: shown(json.value), expected, help });
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** The field of an object; its value is undefined where the object lacks it. Throws what `wrongValue` throws. */
export function field(json: Json, key: string): Json {
  const { value } = json;
  if (!isRecord(value)) return wrongValue(json, "an object");
  return { value: Object.hasOwn(value, key) ? value[key] : undefined, document: json.document, parent: json, key };
}

export function isAbsent({ value }: Json): boolean {
  return value === undefined || value === null;
}

export function textIn(json: Json): string {
  return typeof json.value === "string" ? json.value : wrongValue(json, "a text");
}

export function wholeIn(json: Json): number {
  return typeof json.value === "number" && Number.isInteger(json.value)
    ? json.value
    : wrongValue(json, "a whole number");
}

/** JSON has no infinities: PyTorch writes their names. */
export function numberIn(json: Json): number {
  const { value } = json;
  if (typeof value === "number") return value;
  if (value === "Infinity" || value === "-Infinity" || value === "NaN") return Number(value);
  return wrongValue(json, "a number");
}

export function listIn(json: Json): readonly Json[] {
  const { value } = json;
  if (!Array.isArray(value)) return wrongValue(json, "a list");
  return value.map((each: unknown, key) => ({ value: each, document: json.document, parent: json, key }));
}

export function fieldsIn(json: Json): readonly (readonly [string, Json])[] {
  const { value } = json;
  if (!isRecord(value)) return wrongValue(json, "an object");
  return Object.keys(value).map((key) => [key, field(json, key)]);
}

/** The one field of an object that says by its name which kind of value it has. */
export function variantIn(json: Json): readonly [kind: string, value: Json] {
  const [first, ...more] = fieldsIn(json);
  return first === undefined || more.length > 0 ? wrongValue(json, "an object of one field") : first;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
