/**
 * Draws the results: for each size a bar per implementation, as long as its rate, with a whisker between the quartiles
 * and a line at the rate of compute-only. SVG as text needs no browser; the ticks are d3's.
 */
import { nice, ticks, tickStep } from "d3-array";
import { type BenchRow, quantile } from "./bench-row.ts";
import { flops, sizeText } from "./bench-problem.ts";
import { labelOf } from "./implementation-label.ts";
import type { MeasuredMachine } from "../../src/backends/measured-machine.ts";

const chartWidth = 490;
const right = 130;
/** The average width of a letter. */
const letterWidth = 6.4;
const rowHeight = 18;
const barHeight = 14;
/** The approximate number of ticks of an axis. */
const tickCount = 6;
const panelHead = 34;
const panelFoot = 34;
const top = 48;

const inks = { braid: "#2b6cb0", baseline: "#718096", other: "#dd6b20", published: "#d6bcfa" } as const;

/** Draws the rows that have a rate. */
export function plotSvg(rows: readonly BenchRow[], machine: MeasuredMachine): string {
  const problems = [...new Set(rows.map(({ problem }) => problem))];
  const shown = rows.filter(({ figures }) => rateOf(figures) !== null);
  const left = 24 + letterWidth * Math.max(0, ...shown.map((row) => barLabel(row).length));
  const width = Math.ceil(left + chartWidth + right);
  // All panels share one unit of ticks.
  const unit = Math.max(0, ...shown.map(highest)) < 1 ? gigaflops : teraflops;
  const panels: string[] = [];
  let y = top;
  for (const problem of problems) {
    const bars = shown.filter((row) => row.problem === problem);
    const height = panelHead + bars.length * rowHeight + panelFoot;
    panels.push(panel(bars, { left, top: y, unit }));
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
export function plotHtml(rows: readonly BenchRow[], machine: MeasuredMachine, table: string): string {
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

interface Unit {
  readonly name: string;
  readonly perTeraflop: number;
}

const teraflops: Unit = { name: "TFLOP/s", perTeraflop: 1 };
const gigaflops: Unit = { name: "GFLOP/s", perTeraflop: 1000 };

interface Frame {
  readonly left: number;
  readonly top: number;
  readonly unit: Unit;
}

/** Text with an edge of the page's colour. */
const onLine = 'fill="#1a202c" stroke="white" stroke-width="4" paint-order="stroke"';
const dashes = 'stroke="black" stroke-dasharray="4 3"';

function panel(rows: readonly BenchRow[], { left, top: y, unit }: Frame): string {
  const [first] = rows;
  if (first === undefined) return "";
  const end = y + panelHead + rows.length * rowHeight;
  const edge = left + chartWidth;
  const most = unit.perTeraflop * Math.max(...rows.map(highest));
  const [, last] = nice(0, most, tickCount);
  const x = (value: number): number => left + (value / last) * chartWidth;
  const place = (rate: number): number => x(unit.perTeraflop * rate);
  const decimals = Math.max(0, -Math.floor(Math.log10(tickStep(0, last, tickCount))));
  const compute = rows.find(({ name, option }) => name === "compute-only" && option === "");
  const limit = compute === undefined ? null : rateOf(compute.figures);
  return [
    text(16, y + 20, `${sizeText(first.problem)}, ${first.problem.dtype}`, 'font-weight="bold"'),
    ...ticks(0, last, tickCount).map((tick) => {
      const label = text(x(tick), end + 16, tick.toFixed(decimals), 'text-anchor="middle" fill="#4a5568"');
      return `${line(x(tick), y + panelHead, x(tick), end, 'stroke="#e2e8f0"')}${label}`;
    }),
    text(edge, end + 30, `${unit.name} of each device, share of compute-only`, 'text-anchor="end" fill="#4a5568"'),
    ...rows.map((row, i) => bar(row, place, { left, top: y + panelHead + i * rowHeight })),
    ...(limit === null ? [] : [line(place(limit), y + panelHead, place(limit), end, dashes)]),
    ...rows.map((row, i) => figureOf(row, place, y + panelHead + i * rowHeight, unit)),
  ].join("\n");
}

function bar(row: BenchRow, place: (rate: number) => number, { left, top }: Omit<Frame, "unit">): string {
  const { figures } = row;
  const rate = rateOf(figures);
  if (figures === null || rate === null) return "";
  const label = barLabel(row);
  const middle = top + rowHeight / 2;
  const tip = escaped(`${label}: ${figures.median.toPrecision(4)} ms`);
  const box = `x="${round(left)}" y="${round(middle - barHeight / 2)}" width="${round(place(rate) - left)}" height="${barHeight}"`;
  const [slow, fast] = [place(rateAt(row, 0.75)), place(rateAt(row, 0.25))];
  return [
    text(left - 8, middle + 4, label, 'text-anchor="end"'),
    `<rect ${box} fill="${inkOf(row)}"><title>${tip}</title></rect>`,
    ...(figures.times.length < 2 ? [] : [line(slow, middle, fast, middle, 'stroke="black"')]),
  ].join("");
}

/** Beside the bar, over the line of compute-only. */
function figureOf(row: BenchRow, place: (rate: number) => number, top: number, unit: Unit): string {
  const { figures } = row;
  const rate = rateOf(figures);
  if (figures === null || rate === null) return "";
  const share = figures.computeShare === null ? "" : `, ${(100 * figures.computeShare).toFixed(1)} %`;
  const words = `${(unit.perTeraflop * rate).toPrecision(3)}${share}`;
  return text(place(highest(row)) + 6, top + rowHeight / 2 + 4, words, onLine);
}

function barLabel(row: BenchRow): string {
  return row.source === "measured" ? labelOf(row) : `${row.name} (${row.source})`;
}

/** The rate at a quantile of the times. */
function rateAt({ problem, figures }: BenchRow, part: number): number {
  return figures === null ? 0 : flops(problem) / quantile(figures.times, part) / 1e9;
}

/** The end of the bar or its whisker, whichever is further right. */
function highest(row: BenchRow): number {
  return Math.max(rateOf(row.figures) ?? 0, rateAt(row, 0.25));
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
