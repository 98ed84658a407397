/**
 * Documentation made from the code, so that it cannot rot. A line `<!-- fixture: segment/chain -->` in a page of docs/ is
 * followed by a block that holds test/fixtures/segment/chain.txt (or the file itself, where the name has an extension);
 * docs/diagnostics.md is the register of codes.
 * `npm run docs` writes them; a test fails where they differ.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diagnosticCodes } from "../src/diagnostics/codes.ts";

const block = /(?<marker><!-- fixture: (?<name>[\w./-]+) -->\n)(?:\n?```text\n[\s\S]*?\n```\n)?/gu;

/** Pages with their generated text, by path from the root of the project. */
export function generatedDocs(root: string): ReadonlyMap<string, string> {
  const passes = readdirSync(join(root, "docs/passes")).filter((name) => name.endsWith(".md"));
  const pages = ["docs/verifier.md", "docs/findings.md", ...passes.map((name) => `docs/passes/${name}`)];
  const fixtureText = (name: string): string =>
    readFileSync(join(root, "test/fixtures", name.includes(".") ? name : `${name}.txt`), "utf8").trimEnd();
  return new Map([
    ["docs/diagnostics.md", diagnosticsPage()],
    ...pages.map((page): [string, string] => {
      const text = readFileSync(join(root, page), "utf8");
      const filled = text.replaceAll(
        block,
        (_, marker: string, fixture: string) => `${marker}\n\`\`\`text\n${fixtureText(fixture)}\n\`\`\`\n`,
      );
      return [page, filled];
    }),
  ]);
}

function diagnosticsPage(): string {
  const rows = Object.entries(diagnosticCodes).map(([code, title]) => `- \`${code}\`: ${title}`);
  return [
    "# Diagnostics",
    "",
    "A diagnostic has a code, a place, what was found, what was expected and a fix. Codes are stable. Library calls throw a `DiagnosticError`;",
    "the command line prints it and ends with status 2 (3 for codes of a run).",
    "",
    ...rows,
    "",
  ].join("\n");
}

export function writeGeneratedDocs(root: string): void {
  for (const [path, text] of generatedDocs(root)) writeFileSync(join(root, path), text);
}
