/** TypeScript's language service for one program, with the types of Braid and of the language. */
import { packageName } from "../../src/host/program-file.ts";
import ts from "typescript";
import type { Explanation, TypedName } from "./messages.ts";

const programFile = "/program.ts";

const options: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  allowImportingTsExtensions: true,
  lib: ["lib.es2023.d.ts"],
  paths: { [packageName]: ["/braid/index.d.ts"] },
  types: [],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};

export interface TypesService {
  readonly complete: (text: string, position: number) => readonly TypedName[];
  /** Null where there is nothing with a type. */
  readonly explain: (text: string, position: number) => Explanation | null;
}

/** `files`: `/braid/index.d.ts` and what it imports, and `/lib/lib.es2023.d.ts` and what it refers to, by path. */
export function createTypesService(files: ReadonlyMap<string, string>): TypesService {
  let program = "";
  let version = 0;
  const read = (file: string): string | undefined => (file === programFile ? program : files.get(file));
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [programFile],
    getScriptVersion: (file) => (file === programFile ? String(version) : "0"),
    getScriptSnapshot: (file) => {
      const text = read(file);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => "/",
    getDefaultLibFileName: () => "/lib/lib.es2023.d.ts",
    fileExists: (file) => read(file) !== undefined,
    readFile: read,
    directoryExists: () => true,
    getDirectories: () => [],
  });
  const show = (text: string): void => {
    if (text === program) return;
    program = text;
    version += 1;
  };
  return {
    complete: (text, position) => {
      show(text);
      const { entries = [] } = service.getCompletionsAtPosition(programFile, position, {}) ?? {};
      return entries.map(({ name, kind }) => ({ name, kind }));
    },
    explain: (text, position) => {
      show(text);
      const info = service.getQuickInfoAtPosition(programFile, position);
      if (info === undefined) return null;
      const { start, length } = info.textSpan;
      return {
        from: start,
        to: start + length,
        signature: ts.displayPartsToString(info.displayParts),
        documentation: ts.displayPartsToString(info.documentation),
      };
    },
  };
}
