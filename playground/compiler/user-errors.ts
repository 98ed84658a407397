/** Errors of the user's program as diagnostics that name the line in the editor. */
import { packageName } from "../../src/host/program-file.ts";
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import * as braid from "../../src/index.ts";
import { nearest } from "../../src/support/wording.ts";

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
  const message = messageOf(error);
  return [
    { code: "program-threw", message, place: { kind: "file", path: programFile, ...position }, ...spelling(message) },
  ];
}

/** The name that is not there, and the one that is perhaps meant. */
function spelling(message: string): Pick<Diagnostic, "found" | "help"> {
  const [, name, what] = /([\w$]+) is not (defined|a function)$/u.exec(message) ?? [];
  if (name === undefined) return {};
  if (what === "defined" && Object.hasOwn(braid, name)) {
    return { found: name, help: `add ${name} to the import from "${packageName}"` };
  }
  const meant = nearest(name, what === "defined" ? Object.keys(braid) : methods());
  return meant === undefined ? {} : { found: name, help: `did you mean ${meant}?` };
}

/** Of the objects that programs have: Fusion, TensorView and others. */
function methods(): readonly string[] {
  const fusion = new braid.Fusion();
  const tensor = fusion.input([1], "float");
  const prototypes = [fusion, tensor, tensor.axis(0)].map((each) => Reflect.getPrototypeOf(each));
  return [...prototypes, braid.DeviceMesh].flatMap((each) => Object.getOwnPropertyNames(each));
}

/** The place of a syntax error: `SyntaxError: Unexpected token (3:11)`, columns from 1. */
export function syntaxDiagnostic(error: unknown): Diagnostic {
  const message = messageOf(error);
  const [, line, column] = /\((\d+):(\d+)\)\s*$/u.exec(message) ?? [];
  const position = line === undefined ? {} : { line: Number(line), column: Number(column) };
  return {
    code: "program-threw",
    message: message.replace(/Error transforming \S+: /u, "").replace(/\s*\(\d+:\d+\)\s*$/u, ""),
    place: { kind: "file", path: programFile, ...position },
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
