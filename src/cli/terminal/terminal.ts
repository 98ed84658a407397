/**
 * The output streams of the command line: results to `out`, everything else to `err`. Control characters of what is
 * written are escaped, except for Braid's own colours. Colours only on a terminal, subject to NO_COLOR and FORCE_COLOR
 * (picocolors).
 */
import { CommanderError } from "commander";
import { stderr, stdout } from "node:process";
import pc from "picocolors";
import { type Diagnostic, DiagnosticError, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { escapeControls } from "../../support/wording.ts";
import { type ExitStatus, exitStatus, statusOf } from "../exit-status.ts";

export type Colors = {
  readonly [N in "bold" | "red" | "green" | "yellow" | "cyan"]: (text: string) => string;
};

export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly outColors: Colors;
  readonly errColors: Colors;
  /** Columns of `out`; 100 if it is not a terminal. */
  readonly columns: number;
  /** Whether a person may be watching `err`: progress is shown only then. */
  readonly interactive: boolean;
}

/** The process's own streams. */
export function processTerminal(): Terminal {
  const written = writers(
    (text) => void stdout.write(text),
    (text) => void stderr.write(text),
    // isTTY is absent, not false, without a terminal.
    { out: Boolean(stdout.isTTY) && pc.isColorSupported, err: Boolean(stderr.isTTY) && pc.isColorSupported },
  );
  return { ...written, columns: stdout.isTTY ? stdout.columns : 100, interactive: stderr.isTTY };
}

/** Streams that escape control characters, but for the colours that Braid itself uses. */
export function writers(
  out: (text: string) => void,
  err: (text: string) => void,
  colored: { readonly out: boolean; readonly err: boolean },
): Pick<Terminal, "out" | "err" | "outColors" | "errColors"> {
  const printable = (text: string, isColored: boolean): string =>
    text
      .replaceAll("\r\n", "\n")
      .split(colorCode)
      .map((part, i) => (isColored && i % 2 === 1 ? part : escapeControls(part)))
      .join("");
  return {
    out: (text) => {
      out(printable(text, colored.out));
    },
    err: (text) => {
      err(printable(text, colored.err));
    },
    outColors: pc.createColors(colored.out),
    errColors: pc.createColors(colored.err),
  };
}

/** Of `Colors`, and their ends. */
// oxlint-disable-next-line no-control-regex -- colours are control characters
const colorCode = /(\u001b\[(?:1|22|3[1236]|39)m)/u;

// Reports a failed command: one message on the error stream, and its exit status. A user's mistake never shows a stack.
// A bug in Braid does, because a report needs it.

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
