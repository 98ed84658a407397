/**
 * Ends a rank when the launcher that started it ends for any reason. The launcher holds the other end of the rank's
 * standard input and writes only requests for flight records to it. A thread of its own watches the pipe, because short runs in a row, a long
 * computation or a call of a library can keep this thread from its event loop. The thread sleeps in the system until
 * the pipe closes, so it costs a run nothing.
 */
import { Worker } from "node:worker_threads";
import { packageFile } from "../../backends/package-file.ts";
import type { FlightMessage } from "../../backends/flight/flight-files.ts";
import { sendFirstPulse } from "../spawn-ranks.ts";

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
