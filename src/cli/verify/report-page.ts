/**
 * The findings of `braid verify` as one self-contained HTML page. Every finding has a picture of the order of its
 * commands.
 */
import type { Program } from "../../commands/program.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { Finding } from "../../verify/finding.ts";
import type { VerifyReport } from "../../verify/verify.ts";
import { escapeText, orderPicture } from "./order-picture.ts";

export interface ReportRequest {
  readonly title: string;
  /** Null if the lists do not link; the page then has no pictures. */
  readonly program: Program | null;
  readonly report: VerifyReport;
  /** The command that replays an interleaving in order.txt; null where `program` is. */
  readonly replay: string | null;
}

export function reportPage({ title, program, report, replay }: ReportRequest): string {
  const { ok, findings, size, repair } = report;
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const verdict = ok ? "verified" : `${errors} ${errors === 1 ? "finding" : "findings"}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeText(title)}: ${verdict}</title>
<style>${style}</style>
</head>
<body>
<h1>${escapeText(title)}</h1>
<p class="${ok ? "ok" : "bad"}">${verdict}</p>
<p>${size.ranks} devices, ${size.commands} commands, ${size.streams} queues, ${size.regions} regions of memory.</p>
${findings.map((finding) => section(program, finding, replay)).join("\n")}
${repair === null ? "" : `<h2>Repair, verified</h2>\n<ul>${repair.map(({ text }) => `<li>${escapeText(text)}</li>`).join("")}</ul>`}
</body>
</html>
`;
}

function section(program: Program | null, finding: Finding, replay: string | null): string {
  const { code, severity, message, interleaving } = finding;
  const picture = program === null ? "" : orderPicture(program, finding);
  return `<section class="${severity}">
<h2><code>${code}</code> ${escapeText(message)}</h2>
<pre>${escapeText(renderDiagnostic(finding).split("\n").slice(1).join("\n"))}</pre>
${picture}
${interleaving === null ? "" : `<details><summary>Interleaving that shows it: save it as order.txt and run <code>${escapeText(replay ?? "")}</code></summary><pre>${escapeText(interleaving)}</pre></details>`}
</section>`;
}

const style = `
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1c2128; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f6f8; padding: .7rem; border-radius: 4px; font-size: 13px }
section { border-left: 4px solid #c22; padding-left: 1rem; margin: 1.5rem 0 } section.warning { border-color: #b80 } section.note { border-color: #28a }
.ok { color: #176f2c } .bad { color: #b01919 } .ok, .bad { font-weight: 600 }
svg { display: block; max-width: 100%; height: auto } svg text { font: 11px ui-monospace, monospace; fill: #1c2128 }
svg .lane { stroke: #d0d7de } svg .node { fill: #eef2f6; stroke: #8b98a5 } svg .hot { fill: #ffe3e0; stroke: #c22 }
svg .common { fill: #e2f2e5; stroke: #176f2c } svg .edge { stroke: #57606a; fill: none; marker-end: url(#arrow) }
svg .missing { stroke: #c22; stroke-dasharray: 5 4; fill: none; marker-end: url(#red) }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #14181d } pre { background: #1f252c }
svg text { fill: #e6edf3 } svg .node { fill: #262d35 } svg .hot { fill: #5a2323 } svg .common { fill: #1d4428 } svg .lane { stroke: #39424c } }
`;
