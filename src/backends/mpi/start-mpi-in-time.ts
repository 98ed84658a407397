/** Enters MPI, or ends the process: MPI's start has no time-out of its own, and nothing can interrupt it. */
import { launcherOf } from "./launcher-of.ts";
import { startMpi, type StartedMpi } from "./start-mpi.ts";
import { type Diagnostic, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { Environment } from "../../support/environment.ts";
import { endLater } from "../end-later.ts";

/** Milliseconds that the other processes leave the first one, which may start later, to say what happened. */
export const laterStart = 3000;

/** The status with which a run that failed ends. */
const runFailed = 3;

/** The number of this process as its launcher says, before MPI does. */
export function processNumber(environment: Environment): number {
  return launcherOf(environment)?.rank ?? Number(environment.SLURM_PROCID ?? 0);
}

/** The first process says why, and names `caller` as the place. Throws what startMpi throws. */
export function startMpiInTime(environment: Environment, milliseconds: number, caller: string): StartedMpi {
  const isFirst = processNumber(environment) === 0;
  const callOff = endLater({
    milliseconds: milliseconds + (isFirst ? 0 : laterStart),
    status: runFailed,
    words: isFirst ? `${renderDiagnostic(neverStarted(milliseconds, caller))}\n` : "",
  });
  try {
    return startMpi(environment);
  } finally {
    callOff();
  }
}

/** MPI does not say for whom it waits. */
function neverStarted(milliseconds: number, caller: string): Diagnostic {
  return {
    code: "rendezvous-failed",
    message: "MPI did not start",
    place: { kind: "option", text: caller },
    found: `MPI_Init_thread waited ${milliseconds / 1000} s for the other processes`,
    expected: "all processes of the launcher to start MPI",
    help: "see which of them does not run, hangs or is stopped",
  };
}
