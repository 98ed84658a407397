/** What all parts of a calibration share: the machine, what is said meanwhile, and times without what a run costs by itself. */
import type { Fusion } from "../../ir/api/fusion.ts";
import type { Timing } from "../../simulate/machine-profile.ts";
import type { CalibrationSizes } from "./calibration-sizes.ts";
import { probe, type ProbeHost, type ProbeOptions } from "./probe.ts";

export interface CalibrationHost extends ProbeHost {
  /** What is measured next, a line each. */
  readonly say: (line: string) => void;
}

/** Of the times of a run. least: what others do on the machine only adds. median: what lasts, of devices whose clocks fall under load. */
export type Statistic = "least" | "median";

/** Microseconds of a run beyond those of a run with nothing in it. */
export type Took = (fusion: Fusion, options?: ProbeOptions, statistic?: Statistic) => Promise<number>;

export interface Calibration extends CalibrationHost {
  readonly sizes: CalibrationSizes;
  readonly took: Took;
}

/** No time is less than this: clocks are no finer. */
export const leastTime = 0.01;

/** `run`: microseconds of a run with nothing in it. */
export function tookBeyond(host: ProbeHost, run: number): Took {
  return async (fusion, options = {}, statistic = "least") => {
    const times = await probe(host, fusion, options);
    return Math.max(leastTime, times[statistic] - run);
  };
}

/** At every number of bytes: `timeOf` says what of a run's microseconds was one thing's. */
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
    measured.push({ bytes, microseconds: Math.max(leastTime, timeOf(await took(fusionOf(bytes), options))) });
  }
  return measured;
}
