/** One row of the results, with the figures that derive from it and from the two baselines. */
import { quantile as interpolated } from "d3-array";
import { invariant } from "../../src/support/invariant.ts";
import { torchPaths, xlaPaths } from "./implementation.ts";
import type { Measured } from "./measure.ts";
import type { Traced } from "./traced-run.ts";
import { type BenchProblem, flops, isBlock, received } from "./bench-problem.ts";

export interface BenchRow {
  readonly problem: BenchProblem;
  readonly name: string;
  /** Options of the implementation, as text. */
  readonly option: string;
  /** `measured`, or the source of the figure. */
  readonly source: string;
  /** Null for an implementation that failed. */
  readonly figures: Figures | null;
  /** For a run after a barrier, and per run of several in a row. */
  readonly hostMicroseconds: number | null;
  readonly hostInRowMicroseconds: number | null;
  /** The largest error over its bound; null without --check. */
  readonly partOfBound: number | null;
  readonly traced: Traced | null;
  readonly failure: string | null;
  /** The chosen schedule, or versions. */
  readonly note: string | null;
}

export interface Figures {
  /** Milliseconds; one value if only the median is known. */
  readonly times: readonly number[];
  readonly median: number;
  /** The distance between the quartiles, in milliseconds. */
  readonly spread: number;
  /** Per device, by the median; null without a GEMM. */
  readonly teraflops: number | null;
  /** The bytes that a device has to receive, over the median; null without communication. */
  readonly gigabytesPerSecond: number | null;
  /** The time of compute-only over this one's. */
  readonly computeShare: number | null;
  /** The time of serial over this one's. */
  readonly overSerial: number | null;
  /** The time of PyTorch's better path over this one's. */
  readonly overPyTorch: number | null;
  /** The time of XLA's better path over this one's. */
  readonly overXla: number | null;
  /** The largest `overPyTorch` that the bound allows: PyTorch's better path over the greater of compute-only and bytes. */
  readonly boundOverPyTorch: number | null;
  /** Of a block: the time over the floor, the greater of compute-only and bytes. */
  readonly overFloor: number | null;
  /** Of a block: of the time that PyTorch's better path takes beyond the floor, the part that this one saves. */
  readonly removed: number | null;
  /** Of the time that `serial` takes beyond compute-only, the part that this one saves. */
  readonly hidden: number | null;
}

/** Rows of one problem: the measured ones, then published figures for it. */
export function benchRows(problem: BenchProblem, measured: readonly Measured[]): readonly BenchRow[] {
  const compare: Compared = {
    compute: medianOf(measured, "compute-only"),
    serial: medianOf(measured, "serial"),
    pyTorch: least(torchPaths.map((name) => medianOf(measured, name))),
    xla: least(xlaPaths.map((name) => medianOf(measured, name))),
  };
  const own = measured.map(({ implementation: { name, said }, note, result }): BenchRow => {
    const common = { problem, name, option: said, source: "measured", note };
    if (result.kind === "failed") {
      return { ...nothingKnown, ...common, failure: result.why };
    }
    const { milliseconds, hostMicroseconds, hostInRowMicroseconds, partOfBound, traced } = result.value;
    return {
      ...common,
      figures: figuresOf(problem, name, milliseconds, compare),
      hostMicroseconds: hostMicroseconds === null ? null : quantile(hostMicroseconds, 0.5),
      hostInRowMicroseconds: hostInRowMicroseconds === null ? null : quantile(hostInRowMicroseconds, 0.5),
      partOfBound,
      traced,
      failure: null,
    };
  });
  const published = publishedFor(problem).map(({ name, teraflops, source }): BenchRow => {
    const milliseconds = flops(problem) / teraflops / 1e9;
    const figures = figuresOf(problem, name, [milliseconds], nothingToCompare);
    return { ...nothingKnown, problem, name, option: "", source, figures };
  });
  return [...own, ...published];
}

const nothingKnown = {
  figures: null,
  hostMicroseconds: null,
  hostInRowMicroseconds: null,
  partOfBound: null,
  traced: null,
  failure: null,
  note: null,
} as const;

/** Medians of the baselines; null if one was not measured. */
interface Compared {
  readonly compute: number | null;
  readonly serial: number | null;
  /** PyTorch's better path. */
  readonly pyTorch: number | null;
  /** XLA's. */
  readonly xla: number | null;
}

const nothingToCompare: Compared = { compute: null, serial: null, pyTorch: null, xla: null };

function least(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** The median of the first implementation of that name without options; null if there is none. */
function medianOf(measured: readonly Measured[], name: string): number | null {
  const found = measured.find(({ implementation }) => implementation.name === name && implementation.said === "");
  return found?.result.kind === "done" ? quantile(found.result.value.milliseconds, 0.5) : null;
}

function figuresOf(
  problem: BenchProblem,
  name: string,
  times: readonly number[],
  { compute, serial, pyTorch, xla }: Compared,
): Figures {
  const median = quantile(times, 0.5);
  const multiplies = name !== "communication-only";
  const communicates = !name.endsWith("compute-only");
  const floor = compute === null ? null : Math.max(compute, received(problem) / boundGigabytesPerSecond / 1e6);
  const isFull = multiplies && communicates;
  const blockFloor = isFull && isBlock(problem) ? floor : null;
  return {
    times,
    median,
    spread: quantile(times, 0.75) - quantile(times, 0.25),
    teraflops: multiplies ? flops(problem) / median / 1e9 : null,
    gigabytesPerSecond: communicates ? received(problem) / median / 1e6 : null,
    computeShare: multiplies && compute !== null ? compute / median : null,
    overSerial: isFull && serial !== null ? serial / median : null,
    overPyTorch: isFull && pyTorch !== null ? pyTorch / median : null,
    overXla: isFull && xla !== null ? xla / median : null,
    boundOverPyTorch: isFull && pyTorch !== null && floor !== null ? pyTorch / floor : null,
    overFloor: blockFloor === null ? null : median / blockFloor,
    removed:
      blockFloor !== null && pyTorch !== null && pyTorch > blockFloor
        ? (pyTorch - median) / (pyTorch - blockFloor)
        : null,
    hidden:
      isFull && compute !== null && serial !== null && serial > compute ? (serial - median) / (serial - compute) : null,
  };
}

/** What a device can receive over NVLink 4 with all links: copies between H200 that nothing else disturbs. */
export const boundGigabytesPerSecond = 370;

/** A quantile, interpolated linearly between neighbouring values. */
export function quantile(values: readonly number[], part: number): number {
  const found = interpolated(values, part);
  invariant(found !== undefined, "there are iterations", { values });
  return found;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The standard deviation of the population, as DDLB computes it. */
export function deviation(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

/** Published figures of others, shown beside those of this run with their machine. */
interface Published {
  readonly name: string;
  /** Per GPU. */
  readonly teraflops: number;
  /** The machine, and where the figure was published. */
  readonly source: string;
}

const source = "published: 8 x H100, NVIDIA/Fuser pull request 5259";

/** AG + matmul of m 32768, k 16384 and n 8192 per GPU, in 16 bits. */
const allgatherMatmul: readonly Published[] = [
  { name: "nvFuser, NCCL", teraflops: 560, source },
  { name: "nvFuser, p2p pipeline", teraflops: 678, source },
  { name: "TransformerEngine", teraflops: 660, source },
];

function publishedFor(problem: BenchProblem): readonly Published[] {
  if (isBlock(problem)) return [];
  const { primitive, m, n, k, dtype } = problem;
  const same = primitive === "tp-columnwise" && m === 32_768 && n === 8192 && k === 16_384;
  return same && (dtype === "bfloat16" || dtype === "half") ? allgatherMatmul : [];
}
