/** The worker of the CPU back end, but one of them exits when its third run begins. */
import { parentPort, workerData } from "node:worker_threads";

let runs = 0;
const on = parentPort.on.bind(parentPort);
parentPort.on = (event, listener) =>
  on(event, (message) => {
    if (workerData.number === 1 && message.kind === "run" && ++runs === 3) process.exit(7);
    listener(message);
  });
await import("../../dist/backends/cpu/threads/worker.js");
