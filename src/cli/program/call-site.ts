/**
 * Finds the user's own line in an error's stack: the innermost frame that belongs neither to Braid nor to a package
 * nor to Node. What called the code that runs the user's (`runner`) is no longer the user's.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Position, SourceMaps } from "./source-maps.ts";

export interface CallSite extends Position {
  /** Relative to the working directory if it lies below it, else absolute. */
  readonly path: string;
}

/** The folder that holds Braid's modules: `dist`, or `src` when the sources run. */
const ownFolder = fileURLToPath(new URL("../..", import.meta.url));

/** Undefined where no line of the user's code was running. `runner` is the module that called it. */
export function callSite(error: unknown, maps: SourceMaps, runner: string): CallSite | undefined {
  if (!(error instanceof Error) || error.stack === undefined) return undefined;
  for (const text of error.stack.split("\n")) {
    const frame = parseFrame(text);
    if (frame?.path === runner) return undefined;
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

function isUsers(file: string): boolean {
  return !file.startsWith(ownFolder) && !file.split(path.sep).includes("node_modules");
}
