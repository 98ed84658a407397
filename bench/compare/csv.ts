/** The CSV file: DDLB's columns in DDLB's order, then Braid's own columns. */
import { hostname } from "node:os";
import { type BenchRow, deviation, mean } from "./bench-row.ts";
import { type BenchProblem, flops, isBlock } from "./bench-problem.ts";
import { labelOf } from "./implementation-label.ts";
import type { MeasuredMachine } from "../../src/backends/measured-machine.ts";
import { exposedText } from "./traced-run.ts";

type Cell = string | number | boolean | null;

const columns: readonly (readonly [name: string, cell: (row: BenchRow, machine: MeasuredMachine) => Cell])[] = [
  ["implementation", (row) => labelOf(row)],
  ["mean_time (ms)", times(mean)],
  ["std_time", times(deviation)],
  ["min_time", times((values) => Math.min(...values))],
  ["max_time", times((values) => Math.max(...values))],
  ["m", ({ problem }) => matmulSize(problem, "m")],
  ["n", ({ problem }) => matmulSize(problem, "n")],
  ["k", ({ problem }) => matmulSize(problem, "k")],
  ["dtype", ({ problem }) => problem.dtype],
  ["Throughput (TFLOPS)", rates(mean)],
  ["Throughput std (TFLOPS)", rates(deviation)],
  ["world_size", ({ problem }) => problem.devices],
  ["hostname", () => hostname()],
  ["option", ({ option }) => option],
  ["valid", ({ partOfBound }) => (partOfBound === null ? null : partOfBound <= 1)],
  ["primitive", ({ problem }) => problem.primitive],
  ["model", ({ problem }) => (isBlock(problem) ? problem.model : null)],
  ["cut", ({ problem }) => (isBlock(problem) ? problem.cut : null)],
  ["pass", ({ problem }) => (isBlock(problem) ? problem.pass : null)],
  ["median_time (ms)", ({ figures }) => figures?.median ?? null],
  ["spread_time (ms)", ({ figures }) => figures?.spread ?? null],
  ["median Throughput (TFLOPS)", ({ figures }) => figures?.teraflops ?? null],
  ["share of compute-only", ({ figures }) => figures?.computeShare ?? null],
  ["share of communication hidden", ({ figures }) => figures?.hidden ?? null],
  ["speedup over serial", ({ figures }) => figures?.overSerial ?? null],
  ["speedup over PyTorch", ({ figures }) => figures?.overPyTorch ?? null],
  ["speedup over XLA", ({ figures }) => figures?.overXla ?? null],
  ["bound of the speedup over PyTorch", ({ figures }) => figures?.boundOverPyTorch ?? null],
  ["time over the floor", ({ figures }) => figures?.overFloor ?? null],
  ["part of PyTorch beyond the floor removed", ({ figures }) => figures?.removed ?? null],
  ["GEMMs (ms)", ({ traced }) => traced?.kernels.gemms ?? null],
  ["attention (ms)", ({ traced }) => traced?.kernels.attention ?? null],
  ["other kernels (ms)", ({ traced }) => traced?.kernels.others ?? null],
  ["communication (ms)", ({ traced }) => traced?.communication?.milliseconds ?? null],
  ["part of communication under kernels", ({ traced }) => traced?.communication?.underKernels ?? null],
  ["exposed", ({ traced }) => exposedText(traced)],
  ["Bandwidth (GB/s)", ({ figures }) => figures?.gigabytesPerSecond ?? null],
  ["host_time (us)", ({ hostMicroseconds }) => hostMicroseconds],
  ["host_time in a row (us)", ({ hostInRowMicroseconds }) => hostInRowMicroseconds],
  ["error of bound", ({ partOfBound }) => partOfBound],
  ["iterations", ({ figures, source }) => (source === "measured" ? (figures?.times.length ?? 0) : null)],
  ["device", ({ source }, { device }) => (source === "measured" ? device : null)],
  ["source", ({ source }) => source],
  ["note", ({ note }) => note],
  ["failure", ({ failure }) => failure],
];

/** RFC 4180, with a header line. */
export function csvText(rows: readonly BenchRow[], machine: MeasuredMachine): string {
  const lines = [
    columns.map(([name]) => name),
    ...rows.map((row) => columns.map(([, cell]) => textOf(cell(row, machine)))),
  ];
  return lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
}

function matmulSize(problem: BenchProblem, name: "m" | "n" | "k"): Cell {
  return isBlock(problem) ? null : problem[name];
}

function times(statistic: (values: readonly number[]) => number): (row: BenchRow) => Cell {
  return ({ figures }) => (figures === null ? null : statistic(figures.times));
}

function rates(statistic: (values: readonly number[]) => number): (row: BenchRow) => Cell {
  return ({ figures, problem }) =>
    figures === null || figures.teraflops === null
      ? null
      : statistic(figures.times.map((milliseconds) => flops(problem) / milliseconds / 1e9));
}

/** Booleans are True and False, as in pandas. */
function textOf(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "boolean") return cell ? "True" : "False";
  return String(cell);
}

function quoted(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
