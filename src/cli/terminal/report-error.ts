/**
 * Reports a failed command: one message on the error stream, and its exit status. A user's mistake never shows a stack.
 * A bug in Braid does, because a report needs it.
 */
import { CommanderError } from "commander";
import { type Diagnostic, DiagnosticError, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { type ExitStatus, exitStatus, statusOf } from "../exit-status.ts";
import type { Terminal } from "./terminal.ts";

/** Also writes `{ error: { status, diagnostics } }` to the output if JSON was requested. */
export function reportError(error: unknown, terminal: Terminal, json: boolean): ExitStatus {
  // Help and version were printed by commander.
  if (error instanceof CommanderError && error.exitCode === 0) return exitStatus.ok;
  if (error instanceof DiagnosticError) {
    const status = statusOf(error.diagnostics);
    for (const diagnostic of error.diagnostics) terminal.err(`${colored(diagnostic, terminal)}\n`);
    if (json) writeJsonError(terminal, status, error.diagnostics);
    return status;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  terminal.err(`${terminal.errColors.red("internal error")}: ${text}\n`);
  if (json) writeJsonError(terminal, exitStatus.runFailed, [], text);
  return exitStatus.runFailed;
}

function colored(diagnostic: Diagnostic, { errColors }: Terminal): string {
  const [headline = "", ...rest] = renderDiagnostic(diagnostic).split("\n");
  return [headline.replace(/^error\[[^\]]*\]/, (label) => errColors.bold(errColors.red(label))), ...rest].join("\n");
}

function writeJsonError(
  terminal: Terminal,
  status: ExitStatus,
  diagnostics: readonly Diagnostic[],
  internal?: string,
): void {
  terminal.out(`${JSON.stringify({ error: { status, diagnostics, internal } }, undefined, 2)}\n`);
}
