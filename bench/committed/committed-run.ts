/** A run whose measured time is in bench/results, with the program that ran. */
import type { Program } from "../../src/commands/program.ts";

export interface CommittedRun {
  /** The file in bench/results. */
  readonly source: string;
  readonly text: string;
  /** The profile of the machine that it ran on, of `profiles/`. */
  readonly profile: "2xH200" | "4xH200";
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
