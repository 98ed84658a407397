/**
 * The transform that jiti applies to program files, with their source maps kept, so that frames of stacks lead back to
 * the lines that the user wrote. (Node maps only what its own loaders load.)
 */
import type * as Jiti from "jiti";
import type { TransformOptions, TransformResult } from "jiti";
import { createRequire, SourceMap, type SourceMapPayload } from "node:module";

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface SourceMaps {
  /** For jiti's option of this name, beside `sourceMaps: true`. */
  readonly transform: (options: TransformOptions) => TransformResult;
  /** The position in the source of a position in the transformed file; both count from 1. */
  readonly original: (file: string, position: Position) => Position;
}

export function createSourceMaps(): SourceMaps {
  const maps = new Map<string, SourceMap>();
  // Cached by content: the transform loads a compiler, which takes longer than everything else that `braid lower` does.
  const compiler = createJiti(import.meta.url, { fsCache: true });
  return {
    transform: (options) => {
      const code = compiler.transform(options);
      const payload = inlineMap(code);
      if (payload !== undefined && options.filename !== undefined) maps.set(options.filename, new SourceMap(payload));
      return { code };
    },
    original: (file, position) => mapped(maps.get(file), position),
  };
}

/** The position in the source of a position in transformed code that holds its map. */
export function originalPosition(code: string, position: Position): Position {
  const payload = inlineMap(code);
  return mapped(payload === undefined ? undefined : new SourceMap(payload), position);
}

function mapped(map: SourceMap | undefined, { line, column }: Position): Position {
  const entry = map?.findEntry(line - 1, column - 1);
  if (entry === undefined || !("originalLine" in entry)) return { line, column };
  return { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
}

/** The map may be followed by a comment that the cache adds. */
function inlineMap(code: string): SourceMapPayload | undefined {
  const [, encoded] =
    /^\/\/# sourceMappingURL=data:application\/json[^,]*;base64,(\S+)\s*(?:\/\*[^*]*\*\/\s*)?$/m.exec(code) ?? [];
  if (encoded === undefined) return undefined;
  const value: unknown = JSON.parse(Buffer.from(encoded, "base64").toString("utf8"));
  return isPayload(value) ? value : undefined;
}

function isPayload(value: unknown): value is SourceMapPayload {
  return typeof value === "object" && value !== null && "mappings" in value && typeof value.mappings === "string";
}

// The loader of program files. It is loaded by `require`, because `import` would first search its 190 KB of minified
// CommonJS for exports, which takes 30 ms.

// oxlint-disable-next-line typescript/no-unsafe-assignment -- require gives any
const jiti: typeof Jiti = createRequire(import.meta.url)("jiti");

export const createJiti = jiti.createJiti;
