/**
 * Times GEMMs: their rates by shape, the slowdown under load and with an SM margin, and the slowdown of a GEMM and a
 * transfer that run at the same time.
 */
import type { Program } from "../../commands/program.ts";
import { dtypes, type DType } from "../../numerics/dtype.ts";
import { type GemmShape, interpolatedTime } from "../../simulate/interpolate.ts";
import {
  type MarginGrid,
  measuredMargin,
  type GemmGrid,
  isTimedUnderLoad,
  type Sustained,
  type Timing,
} from "../../simulate/machine-profile.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Calibration } from "./calibration-host.ts";
import { collectiveProbes, gatherAndMultiply, gemms, multiplyAndReduce } from "./probe-fusions.ts";

/** One GEMM in a run: the shortest load of its shape. Of 8-bit floats, a run that takes milliseconds. */
export async function gemmGrid(
  { devices, sizes, say, took }: Pick<Calibration, "devices" | "sizes" | "say" | "took">,
  dtype: DType,
): Promise<GemmGrid> {
  const { m, n, k } = sizes;
  const teraflops: number[] = [];
  for (const rows of m) {
    say(`GEMMs in ${dtype}, ${rows} rows`);
    for (const columns of n) {
      for (const contracted of k) {
        const shape: GemmShape = { m: rows, n: columns, k: contracted };
        const one = await took(gemms(devices, shape, dtype), {}, "median");
        const count = isTimedUnderLoad(dtype) ? Math.min(mostUnderLoad, Math.ceil(microsecondsUnderLoad / one)) : 1;
        const time = count === 1 ? one : (await took(gemms(devices, shape, dtype, count), {}, "median")) / count;
        teraflops.push((2 * rows * columns * contracted) / time / 1e6);
      }
    }
  }
  return { dtype, m, n, k, teraflops };
}

/** Of a run whose GEMMs are timed under load, and the most GEMMs in it. */
const microsecondsUnderLoad = 6000;
const mostUnderLoad = 64;

/**
 * Runs of more and more GEMMs of one shape: the factor on the time of each compared with a single one. Factors never
 * fall.
 */
export async function sustainedGemms({
  devices,
  sizes,
  say,
  took,
}: Pick<Calibration, "devices" | "sizes" | "say" | "took">): Promise<readonly Sustained[]> {
  const { shape, counts } = sizes.sustained;
  const found: Sustained[] = [];
  for (const count of counts) {
    say(`${count} GEMMs in a run`);
    const microseconds = await took(gemms(devices, shape, at(sizes.dtypes, 0), count), {}, "median");
    const [first, last] = [found[0], found.at(-1)];
    // The run with fewer GEMMs took longer, so it was disturbed and is left out.
    if (last !== undefined && microseconds <= last.microseconds) continue;
    const factor = first === undefined ? 1 : microseconds / count / first.microseconds;
    found.push({ microseconds, factor: Math.max(last?.factor ?? 1, factor) });
  }
  return found;
}

/**
 * How many times longer a GEMM and a transfer take at the same time, averaged over two pipelines that use the library.
 *
 *     two chunks, gathered and multiplied:    gather 1, gather 2 | GEMM 1, GEMM 2
 *     four, multiplied and reduced:           GEMM 1, GEMM 2, reduce 1 | GEMM 3, reduce 2 | GEMM 4, reduce 3, reduce 4
 *
 * A reduction that becomes ready during a GEMM begins when that GEMM ends. Time beyond this path was lost while a
 * transfer and a GEMM ran together.
 */
export async function slowdownBesideTransfer({ devices, sizes, say, took }: Calibration): Promise<number> {
  say("GEMMs beside a transfer");
  const { beside } = sizes;
  const dtype = at(sizes.dtypes, 0);
  const { bytes } = dtypes[dtype];
  const [half, quarter] = [2, 4].map((parts): GemmShape => ({ ...beside, m: beside.m / parts }));
  invariant(half !== undefined && quarter !== undefined, "rows are cut in two and in four");
  const library = { lowering: { backend: "nccl" } } as const;
  const gather = await took(collectiveProbes.Allgather(devices, half.m * half.k * bytes), library);
  const halves = await took(gemms(devices, half, dtype, 2), {}, "median");
  const gathered = await took(gatherAndMultiply(devices, beside, dtype), library, "median");
  const reduce = await took(collectiveProbes.Allreduce(devices, quarter.m * quarter.n * bytes), library);
  const quarters = await took(gemms(devices, quarter, dtype, 4), {}, "median");
  const afterwards = { lowering: { ...library.lowering, insertReshardingAfter: true } };
  const reduced = await took(multiplyAndReduce(devices, beside, dtype, 4), afterwards, "median");
  const lost = [(gathered - gather - halves) / gather, (reduced - quarters - 2 * reduce) / (2 * reduce)];
  const mean = lost.reduce((sum, each) => sum + each, 0) / lost.length;
  return 1 + Math.min(1, Math.max(0, mean));
}

/**
 * Two chunks: multiplied alone, multiplied with an SM margin, and reduced in peers' memory without a margin. A
 * reduction runs beside the next GEMM if that leaves SMs free. `reductions`: times of kernels in peers' memory alone.
 *
 *     SMs free:   GEMM 1 | GEMM 2, reduce 1 | reduce 2          reduce 1 hidden, or GEMM 2 after it if that is shorter
 *     none free:  GEMM 1 | GEMM 2 | reduce 1 | reduce 2
 */
export async function gemmsBesideKernels(
  { devices, sizes, say, took }: Calibration,
  reductions: readonly Timing[],
): Promise<MarginGrid> {
  const { m, n, k } = sizes.margins;
  const dtype = at(sizes.dtypes, 0);
  const factors: number[] = [];
  const room: number[] = [];
  for (const rows of m) {
    say(`GEMMs beside kernels, ${rows} rows`);
    for (const columns of n) {
      for (const contracted of k) {
        const shape: GemmShape = { m: 2 * rows, n: columns, k: contracted };
        const alone = multiplyAndReduce(devices, shape, dtype, 2, false);
        const whole = await took(alone, oneStream, "median");
        const less = await took(alone, { ...oneStream, rewrite: withMargin }, "median");
        const reduced = await took(multiplyAndReduce(devices, shape, dtype, 2), inPeers, "median");
        const reduction = interpolatedTime(reductions, bytesInPeers(devices, rows * columns * dtypes[dtype].bytes));
        factors.push(Math.max(1, less / whole));
        const hidden = (whole + 2 * reduction - reduced) / Math.min(whole / 2, reduction);
        room.push(Math.min(1, Math.max(0, hidden)));
      }
    }
  }
  return { m, n, k, factors, room };
}

const oneStream = { schedule: { computeStreams: 1 } } as const;
const inPeers = { ...oneStream, lowering: { backend: "cuda", insertReshardingAfter: true } } as const;

/**
 * Bytes in peers' memory of an all-reduce of `bytes` bytes: each rank reads its slice of all other inputs, and writes
 * the sum into all other outputs.
 */
export function bytesInPeers(devices: number, bytes: number): number {
  return Math.round((2 * bytes * (devices - 1)) / devices);
}

/** Sets the margin on every GEMM, even if nothing runs beside it. */
function withMargin(program: Program): Program {
  return {
    ...program,
    ranks: program.ranks.map((rank) => ({
      ...rank,
      commands: rank.commands.map((command) =>
        command.kind === "launch" ? { ...command, smMargin: measuredMargin } : command,
      ),
    })),
  };
}
