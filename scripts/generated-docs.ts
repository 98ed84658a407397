/**
 * The generated parts of docs/. A line `<!-- fixture: sharding/rows -->` in a page is followed by a block with the text
 * of test/fixtures/sharding/rows.txt, or of the file itself if the name has an extension. (Where a page links to a
 * fixture instead, only the site has its text: scripts/site/stage-page.ts.) docs/diagnostics.md is
 * generated from the register of codes, docs/ops.md from rows and docstrings, the schemas of plans from what reads them,
 * tables of options from their schema. `npm run docs` writes them; a test fails if they differ.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DiagnosticCode, diagnosticCodes } from "../src/diagnostics/codes.ts";
import { DiagnosticError } from "../src/diagnostics/diagnostic.ts";
import { Fusion } from "../src/ir/api/fusion.ts";
import { at, keysOf } from "../src/support/invariant.ts";
import { opsPage, wrapped } from "./ops-page.ts";
import { withOptionTables } from "./option-tables.ts";
import { planSchemas } from "./plan-schemas.ts";

const block = /(?<marker><!-- fixture: (?<name>[\w./-]+) -->\n)(?:\n?```text\n[\s\S]*?\n```\n)?/gu;

/** Pages with their generated text, by path from the root of the project. */
export function generatedDocs(root: string): ReadonlyMap<string, string> {
  const pages = ["docs/verifier.md", "docs/findings.md", "docs/sharding.md"];
  const fixtureText = (name: string): string =>
    readFileSync(join(root, "test/fixtures", name.includes(".") ? name : `${name}.txt`), "utf8").trimEnd();
  return new Map([
    ["docs/diagnostics.md", diagnosticsPage()],
    ["docs/ops.md", opsPage(root)],
    ...planSchemas(),
    ...["docs/command-line.md", "docs/benchmark.md"].map((page): [string, string] => [
      page,
      withOptionTables(readFileSync(join(root, page), "utf8"), "page"),
    ]),
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

/** Headings of docs/diagnostics.md, keyed by the first code under each. */
const headings: { readonly [C in DiagnosticCode]?: string } = {
  "axis-out-of-range": "Building a Fusion",
  "resharding-unsupported": "Lowering",
  "host-program-invalid": "Host programs and dumps",
  "model-syntax": "Model files",
  "size-missing": "Recording and linking",
  "data-race": "Verifying",
  "input-count": "Inputs, files and options",
  stuck: "Running",
};

function diagnosticsPage(): string {
  const all = keysOf(diagnosticCodes);
  const starts = all.flatMap((code, position) => (headings[code] === undefined ? [] : [position]));
  const sections = starts.map((start, i) => all.slice(start, starts[i + 1]));
  return [
    "# Diagnostics",
    "",
    ...exampleDiagnostic().map((line) => `    ${line}`),
    "",
    ...wrapped(
      "Look up the code in brackets below; codes are stable. Library calls throw a `DiagnosticError` (exported by " +
        '`@braid-compiler/braid`); `error.diagnostics[0].code` is `"bad-extent"` here, and the other fields are `message`, `place`, `source`, ' +
        "`found`, `expected`, `help` and `notes`. The command line prints them and exits with status 1 if a check " +
        "failed or `braid verify` found an error, with 3 if a run failed, and otherwise with 2. " +
        "[gpu.md](gpu.md#trouble-shooting) has more on GPUs and launchers.",
    ),
    ...sections.flatMap((codes) => [
      "",
      `## ${at(
        codes.flatMap((code) => headings[code] ?? []),
        0,
      )}`,
      "",
      ...sectionOf(codes),
    ]),
    "",
  ].join("\n");
}

function sectionOf(codes: readonly DiagnosticCode[]): readonly string[] {
  if (!codes.includes("data-race")) return codes.map((code) => `- \`${code}\`: ${diagnosticCodes[code]}`);
  return ["[findings.md](findings.md) explains what the verifier reports."];
}

function exampleDiagnostic(): readonly string[] {
  try {
    new Fusion().input([8, 1.5625], "float");
  } catch (error) {
    if (error instanceof DiagnosticError)
      return error.message.replace(/ where: .*/u, " where: mlp.ts:12:15").split("\n");
  }
  throw new Error("an extent that is not a whole number is a diagnostic");
}

export function writeGeneratedDocs(root: string): void {
  for (const [path, text] of generatedDocs(root)) writeFileSync(join(root, path), text);
}
