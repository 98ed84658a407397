/** Shared by all parts of a calibration: the machine, progress messages, and times without the fixed cost of a run. */
import type { Target } from "../../compile/compile.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { GemmShape } from "../../simulate/interpolate.ts";
import type { Timing } from "../../simulate/machine-profile.ts";
import { probe, type ProbeHost, type ProbeOptions } from "./probe.ts";

export interface CalibrationHost extends ProbeHost {
  /** Receives a line for each measurement before it starts. */
  readonly say: (line: string) => void;
}

/** least: for machines where other load only adds time. median: for devices whose clocks fall under load. */
export type Statistic = "least" | "median";

/** Microseconds of a run beyond those of an empty run. */
export type Took = (fusion: Fusion, options?: ProbeOptions, statistic?: Statistic) => Promise<number>;

export interface Calibration extends CalibrationHost {
  readonly sizes: CalibrationSizes;
  readonly took: Took;
}

/** The least time in microseconds: clocks are no finer. */
export const leastMeasuredTime = 0.01;

/** `run`: microseconds of an empty run. */
export function tookBeyond(host: ProbeHost, run: number): Took {
  return async (fusion, options = {}, statistic = "least") => {
    const times = await probe(host, fusion, options);
    return Math.max(leastMeasuredTime, times[statistic] - run);
  };
}

/** Timings at every size in bytes. `timeOf` extracts the time of one operation from a run's microseconds. */
export async function timingsOf(
  { sizes, say, took }: Calibration,
  what: string,
  fusionOf: (bytes: number) => Fusion,
  options: ProbeOptions = {},
  timeOf: (microseconds: number) => number = (microseconds) => microseconds,
): Promise<readonly Timing[]> {
  const measured: Timing[] = [];
  for (const bytes of sizes.bytes) {
    say(`${what}, ${bytes} bytes`);
    measured.push({ bytes, microseconds: Math.max(leastMeasuredTime, timeOf(await took(fusionOf(bytes), options))) });
  }
  return measured;
}

// The sizes at which a machine is measured. The largest take milliseconds, on a GPU and on a CPU.

export interface CalibrationSizes {
  /** GEMM sizes. Times in between are interpolated, so each axis grows by factors of 2 to 4. */
  readonly dtypes: readonly DType[];
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  /** Of the operands of scaled GEMMs of the same sizes. */
  readonly scaled: readonly DType[];
  /** One sequence of each length. */
  readonly attention: { readonly heads: number; readonly headSize: number; readonly lengths: readonly number[] };
  /** For sums of partial results. */
  readonly summed: readonly DType[];
  /** For copies, pointwise kernels, sums and collectives, in bytes. */
  readonly bytes: readonly number[];
  /** GEMMs beside kernels in peers' memory. Each GEMM takes longer than its kernel. */
  readonly margins: { readonly m: readonly number[]; readonly n: readonly number[]; readonly k: readonly number[] };
  /** One shape, repeated `counts` times in a run: from the device's highest clock to its sustained one. */
  readonly sustained: { readonly shape: GemmShape; readonly counts: readonly number[] };
  /** A GEMM that takes longer than gathering its rows by the library and longer than reducing its result. */
  readonly beside: GemmShape;
  /** A GEMM that takes a little longer than copying its rows. */
  readonly afterCopies: GemmShape;
}

const kibi = 2 ** 10;
const mebi = 2 ** 20;

export const calibrationSizes: { readonly [B in Target]: CalibrationSizes } = {
  cpu: {
    dtypes: ["float"],
    m: [32, 256],
    n: [32, 256],
    k: [32, 256],
    scaled: [],
    attention: { heads: 2, headSize: 32, lengths: [64, 256] },
    summed: ["float"],
    bytes: [kibi, 64 * kibi, 4 * mebi],
    margins: { m: [128], n: [256], k: [64] },
    sustained: { shape: { m: 256, n: 256, k: 256 }, counts: [1, 2] },
    beside: { m: 256, n: 256, k: 256 },
    afterCopies: { m: 256, n: 256, k: 64 },
  },
  cuda: {
    dtypes: ["bfloat16"],
    m: [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768],
    n: [512, 1024, 2048, 8192],
    k: [512, 1024, 2048, 8192, 16_384],
    scaled: ["float8_e4m3fn"],
    attention: { heads: 16, headSize: 128, lengths: [1024, 2048, 4096, 8192, 16_384] },
    summed: ["bfloat16", "float"],
    bytes: [64 * kibi, 512 * kibi, 4 * mebi, 16 * mebi, 64 * mebi, 256 * mebi],
    margins: { m: [256, 512, 1024, 2048, 4096, 8192, 16_384], n: [1024, 2048, 4096, 8192], k: [8192] },
    sustained: { shape: { m: 4096, n: 8192, k: 8192 }, counts: [1, 2, 4, 8, 16] },
    beside: { m: 8192, n: 8192, k: 8192 },
    afterCopies: { m: 8192, n: 8192, k: 1024 },
  },
};
