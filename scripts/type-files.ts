/** The declarations that a program in the playground sees: Braid's and the language's. */
import { readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { declarationsFrom } from "./declarations.ts";

/** By the path that the playground's TypeScript service has for them. */
export function typeFiles(root: string): Readonly<Record<string, string>> {
  const source = path.join(root, "src");
  const own = [...declarationsFrom(path.join(source, "index.ts"))].map(([file, text]): readonly [string, string] => [
    `/braid/${placeIn(source, file).replace(/\.ts$/u, ".d.ts")}`,
    text,
  ]);
  return Object.fromEntries([...own, ...languageFiles()]);
}

/** The library's first file and all that it refers to. */
function languageFiles(): readonly (readonly [string, string])[] {
  const folder = path.dirname(ts.getDefaultLibFilePath({}));
  const files = new Map<string, string>();
  const left = [path.join(folder, "lib.es2023.d.ts")];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (files.has(file)) continue;
    const text = readFileSync(file, "utf8");
    files.set(file, text);
    const { libReferenceDirectives } = ts.preProcessFile(text, true, true);
    for (const { fileName } of libReferenceDirectives) left.push(path.join(folder, `lib.${fileName}.d.ts`));
  }
  return [...files].map(([file, text]) => [`/lib/${placeIn(folder, file)}`, text]);
}

function placeIn(folder: string, file: string): string {
  return path.relative(folder, file).split(path.sep).join("/");
}
