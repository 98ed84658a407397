/**
 * The thread that watches a rank's standard input for the end of its launcher (see end-with-parent.ts) and for its
 * requests for flight records, which it writes if the main thread does not. It also sends the pulse, which therefore
 * goes on while the main thread computes.
 */
import { Socket } from "node:net";
import process from "node:process";
import { parentPort } from "node:worker_threads";
import { isFlightMessage } from "../../backends/flight/flight-message.ts";
import { createFlightStandIn } from "./flight-stand-in.ts";
import { sendPulses } from "./pulse.ts";

const stdin = 0;

/** Milliseconds that the process gets to end by itself. */
const grace = 1000;

const flights = createFlightStandIn();
parentPort?.on("message", (message: unknown) => {
  if (isFlightMessage(message)) flights.take(message);
});
// Messages alone do not keep the process alive.
parentPort?.unref();

new Socket({ fd: stdin })
  .on("data", (bytes) => flights.asked(bytes.toString()))
  // A pipe that fails ends in `close`.
  .on("error", () => {})
  .on("close", () => {
    parentPort?.postMessage("closed");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), grace);
  });

sendPulses();
