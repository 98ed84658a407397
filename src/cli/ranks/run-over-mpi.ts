/**
 * `braid run --on mpi`: this process is one of those that mpirun or srun started. All work in step, and the first one
 * reports, also what failed in another.
 */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import { mpiWorld } from "../../launch/mpi-world.ts";
import { exchangeClaims, hostClaim, topologyOf } from "../../launch/topology.ts";
import { launcherOf } from "../../backends/mpi/launcher-of.ts";
import { startMpi, type StartedMpi } from "../../backends/mpi/start-mpi.ts";
import { type Diagnostic, DiagnosticError, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { Connection, World } from "../../launch/world.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { endLater } from "./end-later.ts";
import { reasonOf, statusOfFailure, wordsOf } from "./failure-words.ts";
import { processEnvironment } from "./where-to-run.ts";
import { withFlight } from "./with-flight.ts";

export interface MpiPlace extends StartedMpi {
  readonly world: World;
  /** Processes on this host. */
  readonly processesHere: number;
}

/** Milliseconds in which the first process prints what happened, before the launcher ends all. */
const lingerMilliseconds = 1000;
/** By how much the first process may start later than another. */
const startMilliseconds = 3000;

export async function runOverMpi(
  exchangeTimeout: number,
  flightDir: string | undefined,
  work: (place: MpiPlace, flight: FlightRecorder) => Promise<ExitStatus>,
): Promise<ExitStatus> {
  const started = await startedMpi(exchangeTimeout);
  const where = { kind: "here", devices: started.messages.size } as const;
  return withFlight(where, flightDir, async (flight) => {
    const unplaced = mpiWorld(started.messages, exchangeTimeout);
    try {
      // Cores are shared where the machine is, whatever NCCL_HOSTID says.
      const claims = await exchangeClaims(unplaced, hostClaim({}, { localRank: null, localWorldSize: null }));
      const world = { ...unplaced, ...topologyOf(claims, unplaced.rank) };
      const processesHere = world.hosts.filter((host) => host === world.hosts[world.rank]).length;
      const status = await work({ ...started, world, processesHere }, flight);
      await world.leave();
      return status;
    } catch (error) {
      return givenUp(error, unplaced);
    }
  });
}

/** The first process says why, and launchers then end the others. What the launcher did wrong it did on all. */
async function startedMpi(exchangeTimeout: number): Promise<StartedMpi> {
  const env = processEnvironment;
  const rank = launcherOf(env)?.rank ?? Number(env.SLURM_PROCID ?? 0);
  const callOff = endLater({
    milliseconds: exchangeTimeout + (rank === 0 ? 0 : startMilliseconds),
    status: exitStatus.runFailed,
    words: rank === 0 ? `${renderDiagnostic(neverStarted(exchangeTimeout))}\n` : "",
  });
  try {
    return startMpi(env);
  } catch (error) {
    if (rank !== 0) await sleep(startMilliseconds);
    const isCommon = error instanceof DiagnosticError && error.diagnostics[0]?.code === "launcher-environment";
    // oxlint-disable-next-line unicorn/no-process-exit -- without a message
    if (rank !== 0 && isCommon) process.exit(statusOfFailure(error));
    throw error;
  } finally {
    callOff();
  }
}

/** MPI's start has no time-out of its own. It does not say for whom it waits. */
function neverStarted(milliseconds: number): Diagnostic {
  return {
    code: "rendezvous-failed",
    message: "MPI did not start",
    place: { kind: "option", text: "--on mpi" },
    found: `MPI_Init_thread waited ${milliseconds / 1000} s for the other processes`,
    expected: "all processes of the launcher to start MPI",
    help: "see which of them does not run, hangs or is stopped",
  };
}

/** MPI cannot be left while messages are under way, so the process ends without. */
async function givenUp(error: unknown, world: Connection): Promise<never> {
  const text = wordsOf(error);
  if (world.rank === 0) process.stderr.write(`${text}\n`);
  world.lastWords(text);
  world.abort(reasonOf(error));
  if (world.rank !== 0) await sleep(lingerMilliseconds);
  // oxlint-disable-next-line unicorn/no-process-exit -- threads of the MPI library keep the process alive
  process.exit(statusOfFailure(error));
}
