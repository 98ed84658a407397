/** The declarations that a program in the playground sees: Braid's, as built, and the language's. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";

/** By the path that the playground's TypeScript service has for them. */
export function typeFiles(root: string): Readonly<Record<string, string>> {
  const index = path.join(root, "dist/index.d.ts");
  if (!existsSync(index)) throw new Error("dist/index.d.ts is missing: run npm run build first");
  return { ...reached(index, path.join(root, "dist"), "/braid"), ...languageFiles() };
}

function languageFiles(): Readonly<Record<string, string>> {
  const folder = path.dirname(ts.getDefaultLibFilePath({}));
  return reached(path.join(folder, "lib.es2023.d.ts"), folder, "/lib");
}

/** A file and all that it imports or refers to. */
function reached(first: string, folder: string, place: string): Readonly<Record<string, string>> {
  const files = new Map<string, string>();
  const left = [first];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (files.has(file)) continue;
    const text = readFileSync(file, "utf8");
    files.set(file, text);
    const { importedFiles, libReferenceDirectives } = ts.preProcessFile(text, true, true);
    for (const { fileName } of importedFiles)
      if (fileName.startsWith(".")) left.push(path.join(path.dirname(file), fileName.replace(/\.ts$/u, ".d.ts")));
    for (const { fileName } of libReferenceDirectives) left.push(path.join(folder, `lib.${fileName}.d.ts`));
  }
  const named = [...files].map(([file, text]) => [
    `${place}/${path.relative(folder, file).split(path.sep).join("/")}`,
    text.replace(/\n\/\/# sourceMappingURL=.*\s*$/u, "\n"),
  ]);
  return Object.fromEntries(named) as Readonly<Record<string, string>>;
}
