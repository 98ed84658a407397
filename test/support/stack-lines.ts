/**
 * Keeps the lines of stacks. Fusions record who called them, and vite maps each frame by searching source maps: for the
 * same few hundred frames again and again, a twentieth of the suite's time. Frames of built sources, which vite does not
 * know, get their lines in src/.
 */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

type Prepare = NonNullable<typeof Error.prepareStackTrace>;

const done = Symbol.for("braid tests keep the lines of stacks");
const mapped = Error.prepareStackTrace?.bind(Error);
const builtPlace = /(file:\S+\/braid-tests\/sources\/\S+):(\d+):(\d+)/u;

const sourceMaps = new Map<string, SourceMap>();

function mapOf(file: string): SourceMap {
  let map = sourceMaps.get(file);
  if (map === undefined) {
    map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")) as SourceMapPayload);
    sourceMaps.set(file, map);
  }
  return map;
}

/** `file:line:column` of the source, for a place in a built module. */
function sourcePlace(url: string, line: number, column: number): string {
  const file = fileURLToPath(url);
  const origin = mapOf(file).findOrigin(line, column);
  if (!("fileName" in origin)) return `${file}:${line}:${column}`;
  return `${path.resolve(path.dirname(file), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`;
}

// This file is evaluated for each test file, in one process.
if (mapped !== undefined && Reflect.get(globalThis, done) !== true) {
  Reflect.set(globalThis, done, true);
  const lines = new Map<string, string>();
  const lineOf = (frame: NodeJS.CallSite): string => {
    const place = `${frame.getScriptNameOrSourceURL()}:${frame.getLineNumber()}:${frame.getColumnNumber()}`;
    const key = `${place} ${frame.getFunctionName()} ${frame.getTypeName()}`;
    let line = lines.get(key);
    if (line === undefined) {
      line = String(mapped(new Error("frame"), [frame]))
        .slice("Error: frame".length)
        .replace(builtPlace, (_, url: string, at: string, column: string) =>
          sourcePlace(url, Number(at), Number(column)),
        );
      lines.set(key, line);
    }
    return line;
  };
  const prepare: Prepare = (error, frames) => `${error.name}: ${error.message}${frames.map(lineOf).join("")}`;
  Error.prepareStackTrace = prepare;
}
