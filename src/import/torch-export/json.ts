/** Values of a JSON document with the path that leads to them, for messages: `graph_module.graph.nodes[3].target`. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { type Entry, entryText } from "./archive.ts";

/** Which document of which file. */
export interface Document {
  readonly path: string;
  readonly entry: string;
}

/** A value, and how it was reached. */
export interface Json {
  readonly value: unknown;
  readonly document: Document;
  readonly parent: Json | null;
  readonly key: string | number;
}

/** Throws `model-syntax` for text that is no JSON. */
export function parseDocument(entry: Entry, document: Document): Json {
  try {
    return { value: JSON.parse(entryText(entry)), document, parent: null, key: "" };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof URIError)) throw error;
    return fail({
      code: "model-syntax",
      message: "a document of a model's file is no JSON",
      place: { kind: "file", path: `${document.path}: ${document.entry}` },
      found: error.message,
      expected: "JSON, as torch.export.save writes it",
      help: "write the file again with torch.export.save(exported_program, path)",
    });
  }
}

function pathText({ parent, key }: Json): string {
  if (parent === null) return "";
  const before = pathText(parent);
  if (typeof key === "number") return `${before}[${key}]`;
  return before === "" ? key : `${before}.${key}`;
}

/** `model.pt2: models/model.json: graph_module.graph.nodes[3]`. */
export function placeText(json: Json): string {
  const { path, entry } = json.document;
  const text = pathText(json);
  return `${path}: ${entry}${text === "" ? "" : `: ${text}`}`;
}

/** Throws `model-invalid`. */
export function wrongValue(json: Json, expected: string): never {
  return fail({
    code: "model-invalid",
    message: "a document of a model's file has another form",
    place: { kind: "file", path: placeText(json) },
    found: shown(json.value),
    expected,
    help: "write the file again with torch.export.save(exported_program, path)",
  });
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** The field of an object; its value is undefined where the object lacks it. Throws `model-invalid`. */
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
