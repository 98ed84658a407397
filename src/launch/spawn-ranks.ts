/**
 * Starts one process per rank, with the same command and its rank in the environment, and waits until the last has
 * ended. The first failure ends the world: the hub notifies the other ranks, which have a few seconds to report what
 * they were doing and are then killed. A process that never joins, is stopped, or does not exit after its farewell is
 * a failure. Rank 0's output is the run's. Every line of other ranks' error output gets their rank as a prefix. No rank
 * outlives this process: each holds a pipe from it and ends when the pipe closes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Environment } from "../support/environment.ts";
import { newToken } from "./hub/handshake.ts";
import { openHub } from "./hub/hub.ts";
import { hubVariable, tokenVariable } from "./meeting-point.ts";
import type { LastWords, WorldEnd } from "./world.ts";

export interface SpawnOptions {
  readonly worldSize: number;
  /** The program and its arguments: the same for all ranks. */
  readonly command: readonly [string, ...string[]];
  readonly env: Environment;
  /** Milliseconds for joining, for each exchange, and from a rank's farewell until its process exits. */
  readonly timeout: number;
  /** Milliseconds from the end of the world until remaining ranks are killed; 2500 if omitted. */
  readonly grace?: number;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Called once per rank as it starts. */
  readonly onStart?: (rank: number, pid: number) => void;
}

export interface WorldResult {
  /** The exit status of each rank; null if a signal ended it. */
  readonly statuses: readonly (number | null)[];
  /** The signal that ended each rank; null if none did. */
  readonly signals: readonly (NodeJS.Signals | null)[];
  /** Why the world ended early; null if all ranks left in order. */
  readonly end: WorldEnd | null;
  readonly lastWords: readonly LastWords[];
  /** The signal by which the user ended the launcher; null if none came. */
  readonly interrupted: StopSignal | null;
}

export type StopSignal = (typeof stopSignals)[number];

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Milliseconds that ranks get after such a signal: the user wants the end rather than reports. */
const interruptedGrace = 500;

/** A machine with other work may keep a process from running for seconds. */
const leastSilentMilliseconds = 5000;

/** A machine with other work may take seconds to start a process. */
const leastStartMilliseconds = 60_000;

export async function spawnRanks(options: SpawnOptions): Promise<WorldResult> {
  const { worldSize, timeout, grace = 2500 } = options;
  const token = newToken();
  let end: WorldEnd | null = null;
  const watches = new Map<number | "start", NodeJS.Timeout>();
  const watch = (key: number | "start", milliseconds: number, reason: WorldEnd): void => {
    watches.set(
      key,
      setTimeout(() => endWorld(reason), milliseconds),
    );
  };
  const hub = await openHub({
    worldSize,
    token,
    host: "127.0.0.1",
    port: 0,
    timeout,
    onJoin: () => clearTimeout(watches.get("start")),
    onFarewell: (rank) => {
      const reason = `rank ${rank} has left the run, but its process did not exit within ${timeout / 1000} s`;
      watch(rank, timeout, { rank, reason });
    },
  });
  const children: ChildProcess[] = [];
  let reaper: NodeJS.Timeout | undefined;
  const reap = (milliseconds: number): void => {
    clearTimeout(reaper);
    reaper = setTimeout(() => {
      for (const child of children) child.kill("SIGKILL");
    }, milliseconds);
  };
  const ask = (request: string): void => {
    for (const { stdin } of children) if (stdin?.writable === true) stdin.write(request);
  };
  const endWorld = (reason: WorldEnd): void => {
    if (end !== null) return;
    end = reason;
    hub.end(reason);
    if (reason.interrupted !== true) ask(flightRequests.failed);
    reap(grace);
  };
  void hub.ended.then(endWorld);
  let interrupted: StopSignal | null = null;
  const interrupt = (signal: StopSignal): void => {
    interrupted ??= signal;
    endWorld({ rank: 0, reason: `the launcher received ${signal}`, interrupted: true });
    reap(Math.min(grace, interruptedGrace));
  };
  for (const signal of stopSignals) process.once(signal, interrupt);
  const askAll = (): void => ask(flightRequests.goesOn);
  process.on("SIGUSR1", askAll);
  const startLimit = Math.max(timeout, leastStartMilliseconds);
  watch("start", startLimit, { rank: 0, reason: `no rank has joined within ${startLimit / 1000} s of its start` });
  try {
    const results = Array.from({ length: worldSize }, (_, rank) => {
      const child = startRank(options, rank, hub.port, token);
      children.push(child);
      child.once("exit", () => clearTimeout(watches.get(rank)));
      watchPulse(child, Math.max(timeout, leastSilentMilliseconds), (seconds) => {
        endWorld({ rank, reason: `rank ${rank} has been stopped for ${seconds} s` });
      });
      return finished(child, rank, endWorld);
    });
    const endings = await Promise.all(results);
    return {
      statuses: endings.map(({ status }) => status),
      signals: endings.map(({ signal }) => signal),
      end,
      lastWords: hub.lastWords(),
      interrupted,
    };
  } finally {
    clearTimeout(reaper);
    for (const timer of watches.values()) clearTimeout(timer);
    for (const signal of stopSignals) process.removeListener(signal, interrupt);
    process.removeListener("SIGUSR1", askAll);
    await hub.close();
  }
}

function startRank(
  { worldSize, command, env, out, err, onStart }: SpawnOptions,
  rank: number,
  port: number,
  token: string,
): ChildProcess {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    // The rank's standard input closes when this process ends, and carries requests for flight records. The fourth pipe
    // is for its pulse.
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    env: {
      ...env,
      RANK: String(rank),
      WORLD_SIZE: String(worldSize),
      LOCAL_RANK: String(rank),
      LOCAL_WORLD_SIZE: String(worldSize),
      MASTER_ADDR: "127.0.0.1",
      MASTER_PORT: String(port),
      [tokenVariable]: token,
      [hubVariable]: "1",
    },
  });
  child.stdin.on("error", () => {});
  child.stdout.setEncoding("utf8");
  if (rank === 0) child.stdout.on("data", out);
  else child.stdout.resume();
  if (rank === 0) child.stderr.setEncoding("utf8").on("data", err);
  else byLine(child.stderr, (line) => err(`rank ${rank}: ${line}\n`));
  if (child.pid !== undefined) onStart?.(rank, child.pid);
  return child;
}

function byLine(stream: Readable, take: (line: string) => void): void {
  createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on("line", take);
}

interface Ending {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

function finished(child: ChildProcess, rank: number, endWorld: (end: WorldEnd) => void): Promise<Ending> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      endWorld({ rank, reason: `rank ${rank} could not be started: ${error.message}` });
      resolve({ status: null, signal: null });
    });
    child.once("exit", (status, signal) => {
      if (signal !== null) endWorld({ rank, reason: `rank ${rank} was ended by ${signal}` });
      else if (status !== 0) endWorld({ rank, reason: `rank ${rank} ended with status ${status}` });
    });
    child.once("close", (status, signal) => resolve({ status, signal }));
  });
}

// The pulse of a rank: bytes that it sends its launcher on a pipe of its own. A process that is stopped keeps its
// connections, so that only the missing pulse tells the launcher.

/** The file descriptor of the pipe in the rank, after its standard streams. */
const pulsePipe = 3;
const pulseMilliseconds = 500;

/** From now on the launcher expects a pulse. */
export function sendFirstPulse(): void {
  try {
    writeSync(pulsePipe, ".");
  } catch {
    // The launcher has ended, or another program started the rank.
  }
}

export function sendPulses(): void {
  const pipe = new Socket({ fd: pulsePipe, readable: false }).on("error", () => {});
  setInterval(() => pipe.write("."), pulseMilliseconds);
}

/**
 * Calls `stopped` if the pulse of a rank ceases for `limit` milliseconds. It counts ticks of its own, because this
 * process may have been stopped, too.
 */
function watchPulse(child: ChildProcess, limit: number, stopped: (seconds: number) => void): void {
  let silent = 0;
  const seconds = Math.ceil(limit / 1000);
  let timer: NodeJS.Timeout | undefined;
  child.stdio[pulsePipe]
    ?.on("error", () => {})
    .on("data", () => {
      silent = 0;
      timer ??= setInterval(() => {
        silent++;
        if (silent > seconds) stopped(seconds);
      }, 1000);
    });
  child.once("exit", () => clearInterval(timer));
}

/** What the launcher writes to a rank's standard input to get its flight record: the run has failed, or goes on. */
export const flightRequests = { failed: "f", goesOn: "g" } as const;
