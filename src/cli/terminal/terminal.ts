/**
 * The output streams of the command line: results to `out`, everything else to `err`. Control characters of what is
 * written are escaped, except for Braid's own colours. Colours only on a terminal, subject to NO_COLOR and FORCE_COLOR
 * (picocolors).
 */
import { CommanderError } from "commander";
import { randomInt } from "node:crypto";
import { stderr, stdout } from "node:process";
import pc from "picocolors";
import { type Diagnostic, DiagnosticError, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { escapeControls } from "../../support/wording.ts";
import { type ExitStatus, exitStatus, statusOf } from "../exit-status.ts";

const colorNames = ["bold", "red", "green", "yellow", "cyan"] as const;

export type Colors = { readonly [N in (typeof colorNames)[number]]: (text: string) => string };

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

/** Streams that escape control characters, and the colours that they let pass. */
export function writers(
  out: (text: string) => void,
  err: (text: string) => void,
  colored: { readonly out: boolean; readonly err: boolean },
): Pick<Terminal, "out" | "err" | "outColors" | "errColors"> {
  // Numbers that a text cannot guess, before a colour, tell Braid's from those in the text. Tables skip both.
  const mark = `\u001b[200;${randomInt(1000, 10_000)};${randomInt(1000, 10_000)};${randomInt(1000, 10_000)}m`;
  const printable = (text: string): string =>
    text
      .split(mark)
      .map((part, i) => {
        const [color = ""] = i === 0 ? [] : (/^.\[\d+m/u.exec(part) ?? []);
        return color + escapeControls(part.slice(color.length).replaceAll("\r\n", "\n"));
      })
      .join("");
  const marked = (color: string): string => (color === "" ? "" : mark + color);
  const colorsOf = (isColored: boolean): Colors => {
    const painted = (name: keyof Colors): Colors[keyof Colors] => {
      const [open = "", close = ""] = pc.createColors(isColored)[name]("|").split("|");
      return (text) => `${marked(open)}${text}${marked(close)}`;
    };
    return { bold: painted("bold"), red: painted("red"), green: painted("green"), yellow: painted("yellow"), cyan: painted("cyan") }; // prettier-ignore
  };
  return {
    out: (text) => {
      out(printable(text));
    },
    err: (text) => {
      err(printable(text));
    },
    outColors: colorsOf(colored.out),
    errColors: colorsOf(colored.err),
  };
}

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
