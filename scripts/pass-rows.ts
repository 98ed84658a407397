/** What each pass does, as the playground says it: the table of docs/passes/README.md. */
import { readFileSync } from "node:fs";
import path from "node:path";

/** By the name of the pass. */
export function passSentences(root: string): Readonly<Record<string, string>> {
  const page = readFileSync(path.join(root, "docs/passes/README.md"), "utf8");
  const rows = page.matchAll(/^\| \[(?<pass>[\w-]+)\]\([^)]*\) *\| (?<does>.*?) *\|$/gmu);
  return Object.fromEntries([...rows].map(({ groups }) => [groups?.["pass"] ?? "", sentence(groups?.["does"] ?? "")]));
}

/** Without marks of code. */
function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1).replaceAll("`", "")}.`;
}
