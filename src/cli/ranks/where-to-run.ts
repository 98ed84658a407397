/**
 * Decides where `braid run` runs its ranks: all in this process, each in a process that this one starts, or one of them
 * in this process.
 */
import process from "node:process";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Target } from "../../compile/compile.ts";
import { hubVariable } from "../../launch/meeting-point.ts";
import { type RankEnvironment, rankEnvironment } from "../../launch/rank-environment.ts";
import type { Environment } from "../../support/environment.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { launcherOf } from "../../backends/mpi/launcher-of.ts";

export type Whereabouts =
  | { readonly kind: "here"; readonly devices: number }
  | { readonly kind: "processes"; readonly devices: number }
  | {
      readonly kind: "rank";
      readonly devices: number;
      readonly place: RankEnvironment;
      /** Whether `braid run` started this process and reports its failure. */
      readonly supervised: boolean;
    };

/** The launcher's variables identify a rank; they do not configure Braid. */
// oxlint-disable-next-line node/no-process-env
export const processEnvironment: Environment = process.env;

/** How many processes mpirun or srun started beside this one, and it; 1 without them. */
export function launchedProcesses(env: Environment = processEnvironment): number {
  const { OMPI_COMM_WORLD_SIZE: openMpi, PMI_SIZE: mpich, SLURM_STEP_NUM_TASKS: slurm } = env;
  return Number(openMpi ?? mpich ?? slurm ?? 1);
}

/** `devices`: null if the command line does not give it. Throws `launcher-environment` and `device-count`. */
export function whereToRun(
  on: Target,
  devices: number | null,
  usual: number,
  environment: Environment = processEnvironment,
): Whereabouts {
  if (on === "cpu") return { kind: "here", devices: devices ?? usual };
  const place = rankEnvironment(environment);
  if (place === null) {
    const count = devices ?? usual;
    return { kind: count === 1 ? "here" : "processes", devices: count };
  }
  if (devices !== null && devices !== place.worldSize) {
    fail("device-count", "the launcher did not start one rank per device", {
      place: { kind: "option", text: "--devices" },
      found: `--devices ${devices}, ${place.worldSize} ranks from ${place.launcher}`,
      expected: `--devices ${place.worldSize}, or no --devices`,
      help: "start one rank per device",
    });
  }
  return { kind: "rank", devices: place.worldSize, place, supervised: environment[hubVariable] !== undefined };
}

/** Throws `device-count`. */
export function requireSeveralDevices(devices: number): void {
  if (devices >= 2) return;
  fail("device-count", "copies between devices need at least two devices", {
    place: { kind: "option", text: "--devices" },
    found: String(devices),
    expected: "a whole number of at least 2",
    help: "pass --devices 2 or more",
  });
}

/*
 * Mistakes in a command line, which all processes of a launcher have alike: the first one reports them. They are found
 * before the processes know each other.
 */

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
