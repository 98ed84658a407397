/** Runs a call that must fail and returns its one diagnostic. */
import { expect } from "vitest";
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { at } from "../../src/support/invariant.ts";

export function diagnosticOf(call: () => unknown): Diagnostic {
  try {
    call();
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    expect(error.diagnostics).toHaveLength(1);
    return at(error.diagnostics, 0);
  }
  throw new Error("the call did not fail");
}
