/** The first sentence of each pass's page. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** By the name of the pass. */
export function passSentences(root: string): Readonly<Record<string, string>> {
  const folder = path.join(root, "docs/passes");
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((file) => [path.basename(file, ".md"), firstSentence(readFileSync(path.join(folder, file), "utf8"))]),
  );
}

/** Without links and marks of code. */
function firstSentence(page: string): string {
  const [, paragraph = ""] = page.split("\n\n");
  const plain = paragraph
    .replaceAll("\n", " ")
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/gu, "$1")
    .replaceAll("`", "");
  return /^.*?\.(?= [A-Z]|$)/u.exec(plain)?.[0] ?? plain;
}
