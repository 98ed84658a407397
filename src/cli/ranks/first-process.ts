/**
 * Mistakes in a command line, which all processes of a launcher have alike: the first one reports them. They are found
 * before the processes know each other.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { launcherOf } from "../../backends/mpi/launcher-of.ts";
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
