/**
 * Declarations of modules of src/ without a check of types, which takes tsc most of its time: of a module whose exports
 * all say their types they follow from its text alone, and tsc infers the rest. `npm run check` checks types.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { isolatedDeclarationSync } from "rolldown/experimental";
import ts from "typescript";

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ["lib.es2023.d.ts"],
  types: [],
  declaration: true,
  emitDeclarationOnly: true,
  noCheck: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  erasableSyntaxOnly: true,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
  skipLibCheck: true,
};

/** The declarations of a module and of all that they import, by module path. */
export function declarationsFrom(entry: string): ReadonlyMap<string, string> {
  const own = new Map<string, string | null>();
  const host = ts.createCompilerHost(compilerOptions);
  const read = host.getSourceFile.bind(host);
  // Where the text says all types, tsc reads the declarations, which are shorter and need fewer imports.
  host.getSourceFile = (file, options, ...others) => {
    const text = file.endsWith(".d.ts") ? null : declarationsOf(file);
    own.set(file, text);
    return text === null ? read(file, options, ...others) : ts.createSourceFile(file, text, options);
  };
  const program = ts.createProgram([entry], compilerOptions, host);
  const inferred = (file: string): string => {
    let made = "";
    program.emit(program.getSourceFile(file), (_, text) => (made = text), undefined, true);
    if (made === "") throw new Error(`no declarations of ${file}`);
    return made;
  };
  const found = new Map<string, string>();
  const left = [entry];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (found.has(file)) continue;
    const text = own.get(file) ?? inferred(file);
    found.set(file, text);
    left.push(...importsOf(file, text));
  }
  return found;
}

/** Null where a type is to be inferred. */
function declarationsOf(file: string): string | null {
  const { code, errors } = isolatedDeclarationSync(file, readFileSync(file, "utf8"), {});
  return errors.length === 0 ? code : null;
}

function importsOf(file: string, declarations: string): readonly string[] {
  return ts.preProcessFile(declarations, true, true).importedFiles.flatMap(({ fileName }) => {
    const module = path.join(path.dirname(file), fileName.replace(/\.js$/u, ".ts"));
    return fileName.startsWith(".") ? [module] : [];
  });
}
