/** The table at the end of `braid bench`. */
import Table from "cli-table3";
import { plainBorders, trimmedLines } from "../../src/cli/terminal/table-style.ts";
import type { Colors } from "../../src/cli/terminal/terminal.ts";
import { boundGigabytesPerSecond, type BenchRow, type Figures } from "../compare/bench-row.ts";
import { sizeText } from "../compare/bench-problem.ts";
import { at } from "../../src/support/invariant.ts";
import { percentText } from "../../src/support/wording.ts";
import { blockSummary } from "./block-summary.ts";
import { exposedText } from "../compare/traced-run.ts";
import { labelOf } from "../compare/implementation-label.ts";

const columns = [
  "implementation",
  "time [ms]",
  "spread",
  "TFLOP/s",
  "of compute",
  "hidden",
  "of PyTorch",
  "of XLA",
  "of floor",
  "removed",
  "GB/s",
  "host [us]",
  "of bound",
];

/** One table per problem; rows in the order in which implementations were given. */
export function resultsText(rows: readonly BenchRow[], colors: Colors): string {
  const problems = [...new Set(rows.map(({ problem }) => problem))];
  const tables = problems.flatMap((problem) => {
    const { primitive, dtype, devices } = problem;
    const title = `${primitive} ${sizeText(problem)} ${dtype}, ${devices} devices`;
    const own = rows.filter((row) => row.problem === problem);
    return [title, ...tableOf(own, colors), ""];
  });
  const hosts = rows.some(({ hostInRowMicroseconds }) => hostInRowMicroseconds !== null) ? [hostLegend, ""] : [];
  return [...tables, ...hosts, ...summaryLines(rows), ...blockSummary(rows)].join("\n");
}

const hostLegend = "host: a run after a barrier / a run of several in a row";

/** Columns without any value are left out. */
function tableOf(rows: readonly BenchRow[], colors: Colors): readonly string[] {
  const lines = rows.map((row) => cells(row, colors));
  const kept = columns.flatMap((_, i) => (i < 2 || lines.some((line) => line[i] !== none) ? [i] : []));
  const keep = (line: readonly string[]): string[] => kept.map((i) => at(line, i));
  const alignments = kept.map((i): "left" | "right" => (i === 0 ? "left" : "right"));
  const table = new Table({ ...plainBorders, head: keep(columns), colAligns: alignments });
  for (const line of lines) table.push(keep(line));
  const notes = rows.flatMap((row) => {
    // For Braid's own; versions of others are in the CSV.
    const words =
      shortened(row.failure) ?? (row.source === "measured" ? (row.name === "braid" ? row.note : null) : row.source);
    return words === null ? [] : [`${row.source === "measured" ? labelOf(row) : `* ${row.name}`}: ${words}`];
  });
  return [...trimmedLines(table.toString()), ...notes, ...rows.flatMap(tracedLines)];
}

/** Where the time of kernels goes, and why communication is exposed. */
function tracedLines(row: BenchRow): readonly string[] {
  const { traced } = row;
  if (traced === null) return [];
  const { communication, kernels } = traced;
  const { gemms, attention, others } = kernels;
  const hidden =
    communication === null
      ? ""
      : `, communication ${significant(communication.milliseconds)}, ${percentText(communication.underKernels)} of it under kernels`;
  const times = `GEMMs ${significant(gemms)} ms, attention ${significant(attention)}, others ${significant(others)}${hidden}`;
  const exposed = exposedText({ ...traced, exposed: traced.exposed?.slice(0, mostCauses) ?? null });
  return [`${labelOf(row)}: ${times}${exposed === null ? "" : `; exposed: ${exposed}`}`];
}

/** In the table; the CSV has all. */
const mostCauses = 4;

/** The first line and the last line, which is the reason in a Python stack. The CSV has the whole text. */
function shortened(failure: string | null): string | null {
  const lines = failure?.split("\n") ?? [];
  const [first = "", last] = [lines[0], lines.at(-1)];
  if (failure === null || lines.length < 2 || last === undefined) return failure;
  return `${first}: ${last.trim()}`;
}

function cells(row: BenchRow, colors: Colors): string[] {
  const { figures, partOfBound, failure, source } = row;
  const label = source === "measured" ? labelOf(row) : `${row.name} *`;
  if (figures === null)
    return [label, failure === null ? none : colors.red("failed"), ...columns.slice(2).map(() => none)];
  const {
    median,
    spread,
    teraflops,
    gigabytesPerSecond,
    computeShare,
    hidden,
    overPyTorch,
    overXla,
    overFloor,
    removed,
  } = figures;
  return [
    label,
    significant(median),
    source === "measured" ? percentText(spread / median) : none,
    optional(teraflops, significant),
    optional(computeShare, percentText),
    optional(hidden, percentText),
    ...[overPyTorch, overXla].map((ratio) => optional(ratio, (value) => `${value.toFixed(2)}x`)),
    optional(overFloor, (value) => `${value.toFixed(3)}x`),
    optional(removed, percentText),
    optional(gigabytesPerSecond, significant),
    hostText(row),
    optional(partOfBound, (value) => (value <= 1 ? percentText(value) : colors.red("WRONG"))),
  ];
}

const none = "-";

function hostText({ hostMicroseconds, hostInRowMicroseconds }: BenchRow): string {
  const each = [hostMicroseconds, hostInRowMicroseconds].filter((value) => value !== null);
  return each.length === 0 ? none : each.map((value) => value.toFixed(0)).join(" / ");
}

function optional(value: number | null, text: (value: number) => string): string {
  return value === null ? none : text(value);
}

/** Four significant digits. */
function significant(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(4);
}

/**
 * The summary of all sizes: geometric means of each implementation's speedups over others, and of the speedups of
 * Braid's best implementation at each size.
 */
interface Comparison {
  readonly title: string;
  readonly ratioOf: (figures: Figures) => number | null;
}

const comparisons: readonly Comparison[] = [
  { title: "share of compute-only", ratioOf: ({ computeShare }) => computeShare },
  { title: "speedup over serial", ratioOf: ({ overSerial }) => overSerial },
  { title: "speedup over PyTorch's better path", ratioOf: ({ overPyTorch }) => overPyTorch },
  { title: "speedup over XLA's better path", ratioOf: ({ overXla }) => overXla },
];

/** Empty for a single size, whose table has everything. */
function summaryLines(rows: readonly BenchRow[]): readonly string[] {
  const problems = [...new Set(rows.map(({ problem }) => problem))];
  if (problems.length < 2) return [];
  const own = rows.filter(({ name }) => name === "braid");
  const lines = comparisons.flatMap(({ title, ratioOf }) =>
    summaryOf(problems, own, ratioOf, text, `${title}, geometric mean of ${problems.length} sizes (least):`),
  );
  const bounds = problems.map((problem) =>
    Math.max(...own.map((row) => (row.problem === problem ? (row.figures?.boundOverPyTorch ?? 0) : 0))),
  );
  const possible = sumOfLogs(bounds);
  // Where PyTorch reaches the bound there is nothing to share out.
  const reached =
    bounds.includes(0) || possible <= 0
      ? []
      : summaryOf(
          problems,
          own,
          ({ overPyTorch }) => overPyTorch,
          (ratios) => percentText(sumOfLogs(ratios) / possible),
          `log(PyTorch / this) over log(PyTorch / bound), summed over ${problems.length} sizes ` +
            `(bound: compute-only, or the bytes at ${boundGigabytesPerSecond} GB/s if that is more):`,
        );
  return lines.length + reached.length === 0 ? [] : [...lines, ...reached, ""];
}

/** A line per implementation that has a figure at every size, and one for the best at each; empty without such figures. */
function summaryOf(
  problems: readonly BenchRow["problem"][],
  own: readonly BenchRow[],
  ratioOf: Comparison["ratioOf"],
  text: (ratios: readonly number[]) => string,
  title: string,
): readonly string[] {
  const ratio = ({ figures }: BenchRow): number => (figures === null ? null : ratioOf(figures)) ?? 0;
  const best = problems.map((problem) => Math.max(...own.filter((row) => row.problem === problem).map(ratio)));
  if (best.some((each) => !(each > 0))) return [];
  const each = [...new Set(own.map(labelOf))].flatMap((label) => {
    const ratios = own.filter((row) => labelOf(row) === label).map(ratio);
    return ratios.length === problems.length && !ratios.includes(0) ? [`  ${text(ratios)}  ${label}`] : [];
  });
  return [title, ...each, `  ${text(best)}  the best of Braid's implementations at each size`];
}

function sumOfLogs(ratios: readonly number[]): number {
  return ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0);
}

function text(ratios: readonly number[]): string {
  const mean = Math.exp(sumOfLogs(ratios) / ratios.length);
  return `${mean.toFixed(3)} (${Math.min(...ratios).toFixed(3)})`;
}
