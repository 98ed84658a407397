/**
 * The thread that watches a rank's standard input for the end of its launcher (see end-with-parent.ts). It also sends
 * the launcher a pulse, which stops if the process is stopped.
 */
import { Socket } from "node:net";
import process from "node:process";
import { parentPort } from "node:worker_threads";

const stdin = 0;
/** The pipe to the launcher that spawnRanks adds. */
const pulsePipe = 3;
const pulseMilliseconds = 500;

/** Milliseconds that the process gets to end by itself. */
const grace = 1000;

new Socket({ fd: stdin })
  // A pipe that fails ends in `close`.
  .on("error", () => {})
  .on("close", () => {
    parentPort?.postMessage("closed");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), grace);
  })
  .resume();

const pulse = new Socket({ fd: pulsePipe, readable: false }).on("error", () => {});
setInterval(() => pulse.write("."), pulseMilliseconds);
