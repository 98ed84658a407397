/**
 * Runs code of the user's program file and turns its errors into diagnostics that name the file and line. A diagnostic
 * of a Braid call keeps its own place and names the calling line, in the file that the user wrote.
 */
import { packageName } from "../../host/program-file.ts";
import { once } from "node:events";
import path from "node:path";
import process from "node:process";
import { setImmediate as turn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../backends/package-file.ts";
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { siteText } from "../../support/call-site.ts";
import { InvariantError } from "../../support/invariant.ts";
import { builders } from "./running-braid.ts";
import type { Position, SourceMaps } from "./source-maps.ts";

/** Deep enough to reach the user's frame below Braid's and the loader's own. */
const stackFrames = 100;

/** The result of `code`; its errors become a DiagnosticError. A bug of Braid (InvariantError) passes through. */
export async function inUserCode<T>(file: string, maps: SourceMaps, code: () => T | Promise<T>): Promise<T> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = stackFrames;
  const settled = new AbortController();
  try {
    return await Promise.race([settledFor(code), failsApart(settled.signal)]);
  } catch (error) {
    throw readable(file, maps, error);
  } finally {
    Error.stackTraceLimit = limit;
    settled.abort();
  }
}

/** What was thrown cannot be read: that runs the file's code, where it is a Proxy or has getters, or replaced methods. */
export class UnreadableError extends Error {}

function readable(file: string, maps: SourceMaps, error: unknown): Error {
  try {
    return error instanceof InvariantError ? error : new DiagnosticError(diagnosticsOf(file, maps, error));
  } catch {
    return new UnreadableError();
  }
}

/** The result, after a turn of the event loop: that is when Node reports rejected promises without a handler. */
async function settledFor<T>(code: () => T | Promise<T>): Promise<T> {
  const result = await code();
  await turn();
  return result;
}

/** Rejects with an error that nothing in the file catches: of a promise without a handler, or of a timer. */
async function failsApart(signal: AbortSignal): Promise<never> {
  const events: readonly unknown[] = await once(process, "uncaughtException", { signal });
  throw events[0];
}

function diagnosticsOf(file: string, maps: SourceMaps, error: unknown): readonly Diagnostic[] {
  const site = callSite(error, maps);
  if (error instanceof DiagnosticError) {
    return error.diagnostics.map((diagnostic) => withCaller(withLines(diagnostic, maps), site, file));
  }
  const place = site ?? parsePlace(error) ?? { path: file };
  return [
    {
      code: "program-threw",
      message: "the program file threw an error",
      place: { kind: "file", ...place },
      found: firstLine(error),
      expected: "code that runs without an error",
      help: missingImport(error) ?? "correct the program at that line",
    },
  ];
}

function missingImport(error: unknown): string | null {
  const name = error instanceof ReferenceError ? /^(\w+) is not defined$/u.exec(error.message)?.[1] : undefined;
  return name !== undefined && Object.hasOwn(builders, name) ? `add ${name} to the import from "${packageName}"` : null;
}

/** With the lines of the tensors that it mentions as the user wrote them. */
function withLines(diagnostic: Diagnostic, maps: SourceMaps): Diagnostic {
  if (diagnostic.tensors === undefined) return diagnostic;
  const original = (text: string): string => {
    const [, file, line, column] = /^(.+):(\d+):(\d+)$/u.exec(text) ?? [];
    if (file === undefined) return text;
    return siteText({
      path: displayPath(file),
      ...maps.original(file, { line: Number(line), column: Number(column) }),
    });
  };
  const tensors = diagnostic.tensors.map(({ source, annotations, ...each }) => ({
    ...each,
    ...(source === undefined ? {} : { source: original(source) }),
    ...(annotations === undefined
      ? {}
      : { annotations: annotations.map((call) => ({ ...call, source: original(call.source) })) }),
  }));
  return { ...diagnostic, tensors };
}

/** Adds the calling line, or the file if none of its lines was running. */
function withCaller(diagnostic: Diagnostic, site: CallSite | undefined, file: string): Diagnostic {
  if (site !== undefined) return { ...diagnostic, source: `${site.path}:${site.line}:${site.column}` };
  if (diagnostic.place?.kind === "file") return diagnostic;
  return { ...diagnostic, notes: [...(diagnostic.notes ?? []), `in ${displayPath(file)}`] };
}

/** Syntax errors carry their place in the message only, columns from 0: `ParseError: ... /path/file.ts:3:11`. */
function parsePlace(error: unknown): CallSite | undefined {
  if (!(error instanceof Error)) return undefined;
  const [, path, line, column] = /\s(\/\S+|[A-Z]:\\\S+):(\d+):(\d+)\s*$/.exec(error.message) ?? [];
  return path === undefined ? undefined : { path: displayPath(path), line: Number(line), column: Number(column) + 1 };
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw ${String(error)}`;
  const [line = ""] = text.replace(/^Error: (?=\w*Error: )/, "").split("\n");
  return line.trim();
}

/**
 * Finds the user's own line in an error's stack: the innermost frame outside Braid, packages and Node. Frames that
 * called the `runner` of the user's code do not count.
 */
interface CallSite extends Position {
  /** Relative to the working directory if it lies below it, else absolute. */
  readonly path: string;
}

/** The folders of Braid's modules: the built ones, and the sources where those run. */
const ownFolders = ["dist/", "src/"].map((folder) => fileURLToPath(packageFile(folder)));

/** Undefined if no user code was running. */
function callSite(error: unknown, maps: SourceMaps): CallSite | undefined {
  if (!(error instanceof Error) || typeof error.stack !== "string") return undefined;
  for (const text of error.stack.split("\n")) {
    if (isRunner(text)) return undefined;
    const frame = parseFrame(text);
    if (frame !== undefined && isUsers(frame.path)) {
      return { path: displayPath(frame.path), ...maps.original(frame.path, frame) };
    }
  }
  return undefined;
}

/** A path as a user in the working directory would write it. */
export function displayPath(file: string): string {
  const relative = path.relative(".", file);
  return relative.startsWith("..") ? file : relative;
}

/** Frames read `at name (path:line:column)` or `at path:line:column`; paths may be file URLs. */
function parseFrame(text: string): CallSite | undefined {
  const [, location, line, column] = /^\s*at (?:.* \()?(.+?):(\d+):(\d+)\)?$/.exec(text) ?? [];
  if (location === undefined) return undefined;
  const file = location.startsWith("file:") ? fileURLToPath(location) : location.replace(/^async /, "");
  return path.isAbsolute(file) ? { path: file, line: Number(line), column: Number(column) } : undefined;
}

/** Compares names instead of files: a built file holds `inUserCode` beside functions that the user's code calls. */
function isRunner(text: string): boolean {
  return text
    .trimStart()
    .replace(/^at (async )?/, "")
    .startsWith(`${inUserCode.name} (`);
}

/** Whether the file is neither Braid's nor a package's. */
export function isUsers(file: string): boolean {
  if (!path.isAbsolute(file)) return false;
  return !ownFolders.some((folder) => file.startsWith(folder)) && !file.split(path.sep).includes("node_modules");
}
