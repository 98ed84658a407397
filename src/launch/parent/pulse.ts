/**
 * The pulse of a rank: bytes that it sends its launcher on a pipe of its own. A process that is stopped keeps its
 * connections, so that only the missing pulse tells the launcher.
 */
import type { ChildProcess } from "node:child_process";
import { writeSync } from "node:fs";
import { Socket } from "node:net";

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
export function watchPulse(child: ChildProcess, limit: number, stopped: (seconds: number) => void): void {
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
