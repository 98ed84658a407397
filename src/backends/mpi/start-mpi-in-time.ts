/** Enters MPI, or ends the process: MPI's start has no time-out of its own, and nothing can interrupt it. */
import { type Diagnostic, fail, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { Environment } from "../../support/environment.ts";
import { endLater } from "../end-later.ts";
import { mpiAbis } from "./abi.ts";
import { launcherOf, notConnected, requireConnection, tasksOutsideMpi } from "./launcher-of.ts";
import { findMpiLibrary, mpiFolders, type MpiLibrary } from "./mpi-library.ts";
import { enterMpi, type MpiMessages } from "./mpi-messages.ts";

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

// Enters MPI with the library that the process's launcher belongs to.

export interface StartedMpi {
  readonly messages: MpiMessages;
  readonly library: MpiLibrary;
}

/**
 * Once per process. Without a launcher the process is a world of its own. Throws `backend-unavailable` if there is no
 * such library, and if it does not allow other threads in the process; `launcher-environment` if the library would not
 * reach the launcher.
 */
export function startMpi(environment: Environment): StartedMpi {
  requireConnection(environment);
  const wanted = launcherOf(environment)?.abi ?? null;
  const tasks = tasksOutsideMpi(environment);
  // Slurm's own PMI library, which MPICH may be built with, finds the other tasks without variables. Open MPI ends the
  // process.
  const abis = mpiAbis.filter(({ name }) => (wanted === null ? tasks === 1 || name !== "Open MPI" : name === wanted));
  for (const abi of abis) {
    const library = findMpiLibrary(abi);
    if (library === null) continue;
    const messages = enterMpi(library);
    if (messages.threads === "single") noThreads(library);
    if (messages.size < tasks) notConnected(tasks);
    return { messages, library };
  }
  if (tasks > 1) notConnected(tasks);
  const files = abis.flatMap((abi) => abi.files).join(", ");
  return fail("backend-unavailable", "no MPI library loads", {
    place: { kind: "option", text: "--on mpi" },
    found: `no ${files} on the loader's path, nor in ${mpiFolders().join(", ")}`,
    expected: wanted === null ? "an MPI library" : `the library of the launcher, which is that of ${wanted}`,
    help: "install it, or name its folder in LD_LIBRARY_PATH; `braid doctor` shows what this machine has",
  });
}

function noThreads({ version, file }: MpiLibrary): never {
  return fail("backend-unavailable", "the MPI library does not allow threads in the process", {
    place: { kind: "option", text: "--on mpi" },
    found: `${version} (${file}): MPI_THREAD_SINGLE`,
    expected: "at least MPI_THREAD_FUNNELED: streams run on threads, and the main thread calls MPI",
    help: "use a build of the library with threads",
  });
}
