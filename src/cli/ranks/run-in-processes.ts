/**
 * `braid run` with a process per rank: starts the same command once per rank and lets rank 0 write the result. If the
 * world ends early, it writes the reason once and what each rank was doing.
 */
import process from "node:process";
import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import { type FlightRecorder, flightNote } from "../../backends/flight/flight-recorder.ts";
import { packageFile } from "../../backends/package-file.ts";
import { requireGpus } from "../../cuda.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { type World, worldEnded } from "../../launch/join-world.ts";
import { spawnRanks, type StopSignal, type WorldResult } from "../../launch/spawn-ranks.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { usualFlightFolder } from "./with-flight.ts";
import { runAsRank } from "./run-as-rank.ts";
import { processEnvironment, type Whereabouts } from "./where-to-run.ts";

const main = fileURLToPath(packageFile("dist/cli/main.js"));

async function runInProcesses(
  devices: number,
  flightFolder: string,
  { args, exchangeTimeout, terminal }: ProcessLaunch,
): Promise<ExitStatus> {
  const result = await spawnRanks({
    worldSize: devices,
    command: [process.execPath, ...process.execArgv, main, ...args],
    env: processEnvironment,
    timeout: exchangeTimeout,
    out: terminal.out,
    err: terminal.err,
  });
  if (result.interrupted !== null) {
    terminal.err(`ended by ${result.interrupted}, with all ranks\n`);
    return statusOfSignal[result.interrupted];
  }
  // A check that failed was reported by rank 0, whose status ends the world when all others have left.
  if (result.end !== null && !(result.statuses[0] === exitStatus.checkFailed))
    terminal.err(`${withFlight(failureText(result), flightFolder)}\n`);
  return statusOfWorld(result);
}

/** A rank that was killed could not name the folder. */
function withFlight(text: string, folder: string): string {
  const note = flightNote(folder);
  return text.includes(note) || !existsSync(folder) ? text : `${text}\n  note: ${note}`;
}

const statusOfSignal: Readonly<Record<StopSignal, ExitStatus>> = {
  SIGHUP: exitStatus.hungUp,
  SIGINT: exitStatus.interrupted,
  SIGTERM: exitStatus.terminated,
};

interface Work {
  readonly here: () => Promise<ExitStatus>;
  readonly asRank: (world: World, flight: FlightRecorder) => Promise<ExitStatus>;
}

export interface ProcessLaunch {
  /** The command line that each rank runs. */
  readonly args: readonly string[];
  /** Milliseconds that ranks wait for each other. */
  readonly exchangeTimeout: number;
  /** As in the schema of options. */
  readonly flightDir?: string | undefined;
  readonly terminal: Terminal;
}

/** Does `here` in this process, starts the command line once per rank, or does `asRank` as one of these ranks. */
export async function runWhere(where: Whereabouts, { here, asRank }: Work, launch: ProcessLaunch): Promise<ExitStatus> {
  const { exchangeTimeout, flightDir } = launch;
  if (where.kind === "here") return here();
  if (where.kind === "rank") return runAsRank(where, exchangeTimeout, flightDir, asRank);
  requireGpus(where.devices);
  return runInProcesses(where.devices, flightDir ?? usualFlightFolder(where), launch);
}

function statusOfWorld({ statuses, end }: WorldResult): ExitStatus {
  if (end === null) return exitStatus.ok;
  const status = Object.values(exitStatus).find((known) => known === statuses[end.rank]);
  return status === undefined || status === exitStatus.ok ? exitStatus.runFailed : status;
}

/**
 * The report of the rank that ended the world, then the reports of other ranks that say more than that the world ended.
 */
export function failureText({ end, lastWords }: Pick<WorldResult, "end" | "lastWords">): string {
  if (end === null) return "";
  const first = lastWords.find(({ rank }) => rank === end.rank)?.text ?? renderDiagnostic(worldEnded(end));
  const others = lastWords
    .filter(({ rank, text }) => rank !== end.rank && text !== first && !isEcho(text))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ rank, text }) => `rank ${rank}:\n${text.replaceAll(/^/gm, "  ")}`);
  return [first, ...others].join("\n");
}

/** Whether the text only says that another rank failed, and not what this rank was doing. */
function isEcho(text: string): boolean {
  return text.startsWith("error[rank-failed]") && !text.includes("\n  note: ");
}
