/** The fenced blocks of the Markdown pages, which tests run so that the pages stay true. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { at } from "../../src/support/invariant.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** The texts between ```language and ```, in order. `page` is relative to the repository. */
export function fencedBlocks(page: string, language: string): readonly string[] {
  const text = readFileSync(path.join(root, page), "utf8");
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, found, block]) =>
    found === language && block !== undefined ? [block] : [],
  );
}

/** The README's example program. */
export function readmeProgram(): string {
  return at(fencedBlocks("README.md", "ts"), 0);
}

/** The README's use of it as a library. */
export function readmeLibrary(): string {
  return at(fencedBlocks("README.md", "ts"), 1);
}
