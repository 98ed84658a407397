/** The report as one HTML file: the page's script and, compressed, its data. It loads nothing. */
import { readFile } from "node:fs/promises";
import { deflateRawSync } from "node:zlib";
import { packageFile } from "../../backends/package-file.ts";
import type { ReportData } from "../../report/data/report-data.ts";
import { encodeColumns } from "../../support/columns.ts";
import { escapeControls } from "../../support/wording.ts";

/** The file's text in pieces. */
export async function reportPage(data: ReportData): Promise<readonly string[]> {
  const script = await readFile(packageFile("dist/report/page.js"), "utf8");
  const json = deflateRawSync(encodeColumns(data, escapeControls)).toString("base64");
  return [
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeText(data.title)}: ${escapeText(data.verdict.text)}</title>
</head>
<body>
<noscript>This report needs JavaScript.</noscript>
`,
    `<script type="text/plain" id="br-data">${json}</script>\n`,
    `<script type="module">${script}</script>\n</body>\n</html>\n`,
  ];
}

function escapeText(text: string): string {
  return escapeControls(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
