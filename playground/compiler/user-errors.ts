/** Errors of the user's program as diagnostics that name the line in the editor. */
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";

/** The name of the program in stacks and diagnostics. An absolute path, which is the user's for Braid. */
export const programFile = "/program.ts";

export interface Position {
  readonly line: number;
  readonly column: number;
}

export function userDiagnostics(error: unknown): readonly Diagnostic[] {
  const position = positionOf(error);
  if (error instanceof DiagnosticError) {
    return error.diagnostics.map((diagnostic) =>
      position === null || diagnostic.source !== undefined
        ? diagnostic
        : { ...diagnostic, source: `${programFile}:${position.line}:${position.column}` },
    );
  }
  return [
    {
      code: "program-threw",
      message: "the program threw an error",
      place: { kind: "file", path: programFile, ...position },
      found: messageOf(error),
      expected: "code that runs without an error",
      help: "correct the program at that line",
    },
  ];
}

/** The place of a syntax error: `SyntaxError: Unexpected token (3:11)`, columns from 1. */
export function syntaxDiagnostic(error: unknown): Diagnostic {
  const message = messageOf(error);
  const [, line, column] = /\((\d+):(\d+)\)\s*$/u.exec(message) ?? [];
  const position = line === undefined ? {} : { line: Number(line), column: Number(column) };
  return {
    code: "program-threw",
    message: "the program is not valid TypeScript",
    place: { kind: "file", path: programFile, ...position },
    found: message.replace(/^Error transforming \S+: /u, "").replace(/\s*\(\d+:\d+\)\s*$/u, ""),
    expected: "TypeScript that compiles",
    help: "correct the syntax at that line",
  };
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw ${String(error)}`;
  const [line = ""] = text.split("\n");
  return line.trim();
}

/** The innermost line of the program in the error's stack: V8's `(/program.ts:3:9)`, others' `@/program.ts:3:9`. */
function positionOf(error: unknown): Position | null {
  if (!(error instanceof Error) || error.stack === undefined) return null;
  const [, line, column] = /\/program\.ts:(\d+):(\d+)/u.exec(error.stack) ?? [];
  return line === undefined ? null : { line: Number(line), column: Number(column) };
}
