/** What a process that failed tells the others, and its exit status. */
import { DiagnosticError, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { type ExitStatus, exitStatus, statusOf } from "../exit-status.ts";

/** All that it found. */
export function wordsOf(error: unknown): string {
  if (error instanceof DiagnosticError) return error.diagnostics.map(renderDiagnostic).join("\n");
  return `internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}

/** In a sentence. */
export function reasonOf(error: unknown): string {
  if (error instanceof DiagnosticError) return error.diagnostics[0]?.message ?? "it failed";
  return error instanceof Error ? error.message : String(error);
}

export function statusOfFailure(error: unknown): ExitStatus {
  return error instanceof DiagnosticError ? statusOf(error.diagnostics) : exitStatus.runFailed;
}
