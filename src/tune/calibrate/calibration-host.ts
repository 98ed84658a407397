/** Shared by all parts of a calibration: the machine, progress messages, and times without the fixed cost of a run. */
import type { Fusion } from "../../ir/api/fusion.ts";
import type { Timing } from "../../simulate/machine-profile.ts";
import type { CalibrationSizes } from "./calibration-sizes.ts";
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
export const leastTime = 0.01;

/** `run`: microseconds of an empty run. */
export function tookBeyond(host: ProbeHost, run: number): Took {
  return async (fusion, options = {}, statistic = "least") => {
    const times = await probe(host, fusion, options);
    return Math.max(leastTime, times[statistic] - run);
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
    measured.push({ bytes, microseconds: Math.max(leastTime, timeOf(await took(fusionOf(bytes), options))) });
  }
  return measured;
}
