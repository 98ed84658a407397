/**
 * Recognises diagnostics from outside the type checker: of another copy of Braid, or made by a program file. A schema
 * library would take longer to load than a program file.
 */
import type { Diagnostic } from "./diagnostic.ts";

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isNumber: Check = (value) => typeof value === "number";
const isOne =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));

/** An object with these members, and any others. */
function has(members: Readonly<Record<string, Check>>): Check {
  return (value) => {
    if (typeof value !== "object" || value === null) return false;
    const given = new Map<string, unknown>(Object.entries(value));
    return Object.entries(members).every(([name, check]) => check(given.get(name)));
  };
}

const place = either(
  has({ kind: isOne("call", "tensor", "statement", "option"), text: isText }),
  has({ kind: isOne("command"), rank: isNumber, stream: isNumber, text: isText }),
  has({ kind: isOne("file"), path: isText, line: maybe(isNumber), column: maybe(isNumber) }),
);

const tensor = has({
  tensor: isText,
  name: maybe(isText),
  source: maybe(isText),
  annotations: maybe(listOf(has({ call: isText, source: isText }))),
});

const diagnostic = has({
  code: isText,
  message: isText,
  severity: maybe(isOne("error", "warning", "note")),
  place: maybe(place),
  source: maybe(isText),
  excerpt: maybe(has({ text: isText, caret: (value) => Number.isSafeInteger(value) && Number(value) >= 0 })),
  found: maybe(isText),
  expected: maybe(isText),
  help: maybe(isText),
  notes: maybe(listOf(isText)),
  tensors: maybe(listOf(tensor)),
});

export function isDiagnostic(value: unknown): value is Diagnostic {
  return diagnostic(value);
}
