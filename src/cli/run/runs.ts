/** What the runs of one command yield. */
import type { RunReport } from "../../backends/backend.ts";
import type { Program } from "../../commands/program.ts";
import type { TensorArgument } from "../../executor/tensor-arguments.ts";

export interface OneRun {
  readonly program: Program;
  readonly report: RunReport;
}

export interface Runs {
  /** Of the last run. */
  readonly outputs: readonly TensorArgument[];
  readonly runs: readonly OneRun[];
}
