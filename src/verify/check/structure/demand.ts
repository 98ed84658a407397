/** How the checks of a Program's structure refuse: a `program-malformed` with the field that is wrong. */
import { type Diagnostic, DiagnosticError } from "../../../diagnostics/diagnostic.ts";

export function malformedAt(where: string, found: string, expected: string): Diagnostic {
  return {
    code: "program-malformed",
    message: `${where} is not as a Program needs it`,
    place: { kind: "call", text: `verify(program): ${where}` },
    found,
    expected,
    help: "take Programs from compile, link and rewrites, or correct this field",
  };
}

export function demand(condition: boolean, where: string, found: unknown, expected: string): asserts condition {
  if (condition) return;
  throw new DiagnosticError([malformedAt(where, JSON.stringify(found) ?? String(found), expected)]);
}

/** Larger numbers are no count of anything, and their products not exact. */
export const most = 2 ** 45;

export function isCount(value: unknown, limit = most): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < limit;
}

export function demandCounts(values: readonly number[], where: string): void {
  demand(
    Array.isArray(values) && values.every((value) => isCount(value)),
    where,
    values,
    "whole numbers of at least 0",
  );
}
