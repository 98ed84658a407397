/** A run whose measured time is in bench/results, with the program that ran. */
import type { Program } from "../../src/commands/program.ts";

/** Kinds of runs whose errors have causes in common. */
export const runKinds = [
  "allgather + matmul",
  "matmul + reduce-scatter",
  "matmul + all-reduce",
  "communication alone",
  "few rows",
  "transformer blocks",
  "MLPs",
  "kernels alone",
  "pipelines of the self-test",
] as const;
export type RunKind = (typeof runKinds)[number];

export const measuredProfiles = ["2xH100", "2xH200", "4xH200"] as const;
export type MeasuredProfile = (typeof measuredProfiles)[number];

export interface CommittedRun {
  /** The file in bench/results. */
  readonly source: string;
  readonly text: string;
  readonly kind: RunKind;
  /** Runs of one name ran on one machine, which is hardly ever that of the profile. */
  readonly machine: string;
  /** The profile of such machines, of `profiles/`. */
  readonly profile: MeasuredProfile;
  readonly program: Program;
  readonly graph: boolean;
  readonly measured: number;
  /** Whether the measured time, in milliseconds, includes the fixed cost of a run; otherwise it is that of a kernel. */
  readonly isRun: boolean;
}

/** A path in bench/results. */
export function resultsFile(name: string): URL {
  return new URL(`../results/${name}`, import.meta.url);
}
