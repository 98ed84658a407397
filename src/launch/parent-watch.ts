/**
 * The thread that watches a rank's standard input for the end of its launcher (see end-with-parent.ts). It also sends
 * the pulse, which therefore goes on while the main thread computes.
 */
import { Socket } from "node:net";
import process from "node:process";
import { parentPort } from "node:worker_threads";
import { sendPulses } from "./pulse.ts";

const stdin = 0;

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

sendPulses();
