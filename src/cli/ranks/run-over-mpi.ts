/**
 * `braid run --on mpi`: this process is one of those that mpirun or srun started. All work in step, and the first one
 * reports, also what failed in another.
 */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import { laterStart, processNumber, type StartedMpi, startMpiInTime } from "../../backends/mpi/start-mpi-in-time.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { mpiWorld } from "../../launch/mpi-world.ts";
import { exchangeClaims, hostClaim, topologyOf } from "../../launch/enter-world.ts";
import type { Connection, World } from "../../launch/world.ts";
import { escapeControls } from "../../support/wording.ts";
import type { ExitStatus } from "../exit-status.ts";
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
  const isFirst = processNumber(processEnvironment) === 0;
  try {
    return startMpiInTime(processEnvironment, exchangeTimeout, "--on mpi");
  } catch (error) {
    if (!isFirst) await sleep(laterStart);
    const isCommon = error instanceof DiagnosticError && error.diagnostics[0]?.code === "launcher-environment";
    // oxlint-disable-next-line unicorn/no-process-exit -- without a message
    if (!isFirst && isCommon) process.exit(statusOfFailure(error));
    throw error;
  }
}

/** MPI cannot be left while messages are under way, so the process ends without. */
async function givenUp(error: unknown, world: Connection): Promise<never> {
  const text = wordsOf(error);
  if (world.rank === 0) process.stderr.write(`${escapeControls(text)}\n`);
  world.lastWords(text);
  world.abort(reasonOf(error));
  if (world.rank !== 0) await sleep(lingerMilliseconds);
  // oxlint-disable-next-line unicorn/no-process-exit -- threads of the MPI library keep the process alive
  process.exit(statusOfFailure(error));
}
