/**
 * Mistakes in a command line, which all processes of a launcher have alike: the first one reports them. They are found
 * before the processes know each other.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { launcherOf } from "../../backends/mpi/launcher-of.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { Environment } from "../../support/environment.ts";
import { processEnvironment } from "./where-to-run.ts";

/** Long enough for the first process to start and print. */
const headStart = 2000;

/** Whether no launcher started this process, or it is the first of those that one started. */
export function isFirstProcess(env: Environment = processEnvironment): boolean {
  const number = launcherOf(env)?.rank ?? Number(env.RANK ?? env.SLURM_PROCID ?? 0);
  return !(number > 0);
}

/** Waits for the first process to end: the launcher ends all processes as soon as one has failed. */
export async function afterFirst(): Promise<void> {
  await sleep(headStart);
}

/** What the first of `processes` says of a run on the CPU without `--on mpi`: each would run the whole program. */
export function withoutMpi(processes: number): DiagnosticError {
  return new DiagnosticError([
    {
      code: "launcher-environment",
      message: "a launcher started several processes, of which each would run the whole program",
      place: { kind: "option", text: "--on cpu" },
      found: `${processes} processes`,
      expected: "--on mpi, whose processes share the ranks, or one process",
      help: "add --on mpi",
    },
  ]);
}
