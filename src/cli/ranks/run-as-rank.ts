/**
 * `braid run` in a process that is one of the ranks: joins the other ranks, runs, and lets rank 0 report. A failed rank
 * reports to the others why it failed and what it was doing. If `braid run` started the rank, that process prints the
 * reports of all ranks.
 */
import { setTimeout as sleep } from "node:timers/promises";
import process from "node:process";
import { CommonError } from "../../backends/cuda/world.ts";
import { enterWorld } from "../../launch/enter-world.ts";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import type { World } from "../../launch/join-world.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { endLater } from "../../backends/end-later.ts";
import { reasonOf, statusOfFailure, wordsOf } from "./failure-words.ts";
import { withFlight } from "./with-flight.ts";
import { processEnvironment, type Whereabouts } from "./where-to-run.ts";
import { Worker } from "node:worker_threads";
import { packageFile } from "../../backends/package-file.ts";
import type { FlightMessage } from "../../backends/flight/flight-files.ts";
import { sendFirstPulse } from "../../launch/spawn-ranks.ts";

/** Milliseconds for a failed rank's report to reach the hub, for the rank to end by itself, and by another thread. */
const farewellMilliseconds = 100;
const lingerMilliseconds = 1000;
const blockedMilliseconds = 2500;

type Rank = Extract<Whereabouts, { kind: "rank" }>;

/** All ranks run `work` in step. Its result is this rank's exit status. */
export async function runAsRank(
  where: Rank,
  exchangeTimeout: number,
  flightDir: string | undefined,
  work: (world: World, flight: FlightRecorder) => Promise<ExitStatus>,
): Promise<ExitStatus> {
  const mirror = where.supervised ? endWithParent(() => process.exit(exitStatus.runFailed)) : undefined;
  return withFlight(where, flightDir, (flight) => joinAndWork(where, exchangeTimeout, flight, work), mirror);
}

/** Whether rank 0 prints the same. */
function isReported(error: unknown, { rank }: Rank["place"]): boolean {
  return error instanceof CommonError && rank !== 0;
}

async function joinAndWork(
  { place, supervised }: Rank,
  exchangeTimeout: number,
  flight: FlightRecorder,
  work: (world: World, flight: FlightRecorder) => Promise<ExitStatus>,
): Promise<ExitStatus> {
  let world: World;
  try {
    world = await enterWorld(place, processEnvironment, exchangeTimeout);
  } catch (error) {
    if (isReported(error, place)) return statusOfFailure(error);
    throw error;
  }
  try {
    const status = await work(world, flight);
    await world.leave();
    return status;
  } catch (error) {
    // A rank whose own run did not fail has not written its record yet.
    if (error === world.signal.reason) flight.failed(error);
    world.lastWords(wordsOf(error));
    world.abort(reasonOf(error));
    const status = statusOfFailure(error);
    // A library's thread, or a stream that never ends, must not keep the process alive.
    setTimeout(() => process.exit(status), lingerMilliseconds).unref();
    if (!supervised) {
      // Launchers of other hosts do not kill a rank whose thread a library blocks.
      endLater({ milliseconds: blockedMilliseconds, status });
      if (isReported(error, place)) return status;
      // Printed before NCCL's abort can block this thread.
      throw error;
    }
    await sleep(farewellMilliseconds);
    return status;
  }
}

/*
 * Ends a rank when the launcher that started it ends for any reason. The launcher holds the other end of the rank's
 * standard input and writes only requests for flight records to it. A thread of its own watches the pipe, because short
 * runs in a row, a long computation or a call of a library can keep this thread from its event loop. The thread sleeps
 * in the system until the pipe closes, so it costs a run nothing.
 */

/**
 * Calls `end` when the launcher has ended. If the process still runs a second later, it is killed. The thread alone
 * does not keep the process alive. Returns what gives it the words of the flight recorder.
 */
export function endWithParent(end: () => void): (message: FlightMessage) => void {
  sendFirstPulse();
  const watch = new Worker(packageFile("dist/launch/parent/parent-watch.js"), { execArgv: [] });
  watch.on("message", end);
  watch.unref();
  return (message) => watch.postMessage(message);
}
