/**
 * `@braid-compiler/braid/mpi`: programs on the CPUs of several processes, which mpirun or srun started, on one host or
 * several.
 *
 *     const mpi = joinMpi();
 *     const localRanks = mpi.ranksOf(devices);
 *     const executor = await MultiDeviceExecutor.create(fusion, { devices, on: mpi.backend, localRanks });
 *     const [y] = await executor.run(inputs); // shards of this process's ranks
 *     await executor.close();
 *     mpi.leave();
 */
import process from "node:process";
import type { Backend } from "./backends/backend.ts";
import { createFlightRecorder } from "./backends/flight/flight-recorder.ts";
import { createMpiBackend, processesOf, ranksHeld } from "./backends/mpi/mpi-backend.ts";
import { startMpiInTime } from "./backends/mpi/start-mpi-in-time.ts";
import { requireOptions } from "./compile/options/resolve.ts";
import { slurmTasksHere } from "./support/environment.ts";

export interface JoinMpiOptions {
  /** Processes on this host, which share its cores; by default as many as the launcher says, or one. */
  readonly processesHere?: number;
  /** Seconds in which all processes must enter MPI; 60 by default. */
  readonly timeout?: number;
}

/** This process among those of MPI_COMM_WORLD. */
export interface MpiProcess {
  /** Its number, from 0. */
  readonly rank: number;
  /** The number of processes. */
  readonly size: number;
  /** The name and version of the library. */
  readonly library: string;
  /** A back end for `MultiDeviceExecutor`, whose `localRanks` are those of `ranksOf`. */
  readonly backend: Backend;
  /** The ranks, of that many devices, that this process holds. */
  readonly ranksOf: (devices: number) => readonly number[];
  /** Leaves MPI, which cannot be entered again. All processes call it, after their executors have closed. */
  readonly leave: () => void;
}

/**
 * Enters MPI, once per process. MPI cannot be interrupted while it waits for a process that does not come: after the
 * time-out each process ends with status 3, and the first one says why. Throws `bad-option` for a time-out out of range,
 * `backend-unavailable` where no library loads, or it allows no threads, and `launcher-environment` where the library
 * would not reach the launcher.
 */
export function joinMpi({ processesHere = launchedHere(), timeout = 60 }: JoinMpiOptions = {}): MpiProcess {
  requireOptions(["timeout"], { timeout });
  const { messages, library } = startMpiInTime(environment, timeout * 1000, "joinMpi({ timeout })");
  const { rank, size } = messages;
  return {
    rank,
    size,
    library: library.version,
    backend: createMpiBackend({ messages, processesHere, blas: null, flight: createFlightRecorder() }),
    ranksOf: (devices) => ranksHeld(processesOf(devices, size), rank),
    leave: () => messages.close(),
  };
}

/** The launcher's variables say which library it belongs to; they do not configure Braid. */
// oxlint-disable-next-line node/no-process-env
const environment = process.env;

function launchedHere(): number {
  const { OMPI_COMM_WORLD_LOCAL_SIZE: openMpi, MPI_LOCALNRANKS: mpich } = environment;
  const said = [openMpi, mpich, slurmTasksHere(environment)].map(Number);
  return said.find((each) => each > 0) ?? 1;
}
