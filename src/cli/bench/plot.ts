/**
 * The results as a picture: for each size a bar per implementation, as long as its rate, with a whisker from quartile to quartile and a line where the product alone ends. SVG as
 * text, so that it needs no browser; scales and their ticks are d3's.
 */
import { scaleBand, scaleLinear } from "d3-scale";
import { type BenchRow, flops, quantile } from "./bench-row.ts";
import { labelOf } from "./implementation-label.ts";
import type { Machine } from "./machine.ts";

const width = 1040;
const left = 430;
const right = 120;
const barHeight = 18;
const panelHead = 34;
const panelFoot = 34;
const top = 48;

const inks = { braid: "#2b6cb0", baseline: "#718096", other: "#dd6b20", published: "#d6bcfa" } as const;

/** Rows that have a rate; the others have no bar. */
export function plotSvg(rows: readonly BenchRow[], machine: Machine): string {
  const problems = [...new Set(rows.map(({ problem }) => problem))];
  const panels: string[] = [];
  let y = top;
  for (const problem of problems) {
    const bars = rows.filter(({ problem: own, figures }) => own === problem && rateOf(figures) !== null);
    const height = panelHead + bars.length * barHeight + panelFoot;
    panels.push(panel(bars, y));
    y += height;
  }
  const title = `${problems[0]?.primitive ?? "no results"}, ${problems[0]?.devices ?? 0} x ${machine.device}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${y}" fill="white"/>`,
    text(16, 26, title, 'font-size="16" font-weight="bold"'),
    ...panels,
    "</svg>",
    "",
  ].join("\n");
}

/** A page with the picture and the table below it. */
export function plotHtml(rows: readonly BenchRow[], machine: Machine, table: string): string {
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8"><title>braid bench</title></head>',
    "<body>",
    plotSvg(rows, machine),
    `<pre>${escaped(table)}</pre>`,
    "</body></html>",
    "",
  ].join("\n");
}

function panel(rows: readonly BenchRow[], y: number): string {
  const [first] = rows;
  if (first === undefined) return "";
  const { m, n, k, dtype } = first.problem;
  const end = y + panelHead + rows.length * barHeight;
  const highest = Math.max(...rows.map((row) => rateOf(row.figures) ?? 0));
  const x = scaleLinear()
    .domain([0, highest])
    .nice(6)
    .range([left, width - right]);
  const band = scaleBand<number>()
    .domain(rows.map((_, i) => i))
    .range([y + panelHead, end])
    .padding(0.2);
  const compute = rows.find(({ name, option }) => name === "compute-only" && option === "");
  const limit = compute === undefined ? null : rateOf(compute.figures);
  return [
    text(16, y + 20, `m ${m}, n ${n}, k ${k}, ${dtype}`, 'font-weight="bold"'),
    ...x.ticks(6).map((tick) => {
      const at = x(tick);
      const label = text(at, end + 16, x.tickFormat(6)(tick), 'text-anchor="middle" fill="#4a5568"');
      return `${line(at, y + panelHead, at, end, 'stroke="#e2e8f0"')}${label}`;
    }),
    text(width - right, end + 30, "TFLOP/s of each device", 'text-anchor="end" fill="#4a5568"'),
    ...rows.map((row, i) => bar(row, x, band(i) ?? 0, band.bandwidth())),
    ...(limit === null ? [] : [line(x(limit), y + panelHead, x(limit), end, 'stroke="black" stroke-dasharray="4 3"')]),
  ].join("\n");
}

function bar(row: BenchRow, x: (value: number) => number, y: number, height: number): string {
  const { problem, figures, source } = row;
  const rate = rateOf(figures);
  if (figures === null || rate === null) return "";
  const label = source === "measured" ? labelOf(row) : `${row.name} (${source})`;
  const middle = y + height / 2;
  const share = figures.computeShare === null ? "" : `, ${(100 * figures.computeShare).toFixed(1)} %`;
  const speedAt = (part: number): number => flops(problem) / quantile(figures.times, part) / 1e9;
  const whisker = `stroke="black" stroke-width="1"`;
  return [
    text(left - 8, middle + 4, label, 'text-anchor="end"'),
    `<rect x="${round(left)}" y="${round(y)}" width="${round(x(rate) - left)}" height="${round(height)}" fill="${inkOf(row)}"><title>${escaped(`${label}: ${figures.median.toPrecision(4)} ms`)}</title></rect>`,
    ...(figures.times.length < 2 ? [] : [line(x(speedAt(0.75)), middle, x(speedAt(0.25)), middle, whisker)]),
    text(x(Math.max(rate, speedAt(0.25))) + 6, middle + 4, `${rate.toPrecision(3)}${share}`, 'fill="#1a202c"'),
  ].join("");
}

function inkOf({ name, source }: BenchRow): string {
  if (source !== "measured") return inks.published;
  if (name === "braid") return inks.braid;
  return name === "serial" || name === "compute-only" ? inks.baseline : inks.other;
}

function rateOf(figures: BenchRow["figures"]): number | null {
  return figures?.teraflops ?? null;
}

function line(x1: number, y1: number, x2: number, y2: number, style: string): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" ${style}/>`;
}

function text(x: number, y: number, words: string, style: string): string {
  return `<text x="${round(x)}" y="${round(y)}" ${style}>${escaped(words)}</text>`;
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
