/**
 * `braid run` in a process that is one of the ranks: joins the other ranks, runs, and lets rank 0 report. A failed rank
 * reports to the others why it failed and what it was doing. If `braid run` started the rank, that process prints the
 * reports of all ranks.
 */
import { setTimeout as sleep } from "node:timers/promises";
import process from "node:process";
import { Worker } from "node:worker_threads";
import { CommonError } from "../../backends/cuda/world.ts";
import { endWithParent } from "../../launch/end-with-parent.ts";
import { enterWorld } from "../../launch/enter-world.ts";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import type { World } from "../../launch/join-world.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { reasonOf, statusOfFailure, wordsOf } from "./failure-words.ts";
import { withFlight } from "./with-flight.ts";
import { processEnvironment, type Whereabouts } from "./where-to-run.ts";

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

/**
 * Launchers of other hosts do not kill a rank whose thread a library blocks. Another thread ends the process: at once,
 * since Node's own exit waits for the blocked thread, and with the status, if libc can be called.
 */
function endLater(status: ExitStatus): void {
  const program = `setTimeout(() => {
    try {
      const require = process.getBuiltinModule("node:module").createRequire(${JSON.stringify(import.meta.url)});
      require("koffi").load(null).func("void _exit(int status)")(${status});
    } finally {
      process.kill(process.pid, "SIGKILL");
    }
  }, ${blockedMilliseconds})`;
  new Worker(program, { eval: true, execArgv: [] }).unref();
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
      endLater(status);
      if (isReported(error, place)) return status;
      // Printed before NCCL's abort can block this thread.
      throw error;
    }
    await sleep(farewellMilliseconds);
    return status;
  }
}
