/** The thread that draws the progress line on stderr; see progress.ts. */
import { writeSync } from "node:fs";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { invariant } from "../../support/invariant.ts";
import { isProgress, type ShownProgress, progressLine, stopped, stopRequested } from "./progress.ts";

const stderr = 2;
const interval = 100;
/** Milliseconds before anything is drawn. */
const delay = 1000;
const eraseLine = "\r\u001b[2K";

const flags: unknown = workerData;
invariant(flags instanceof Int32Array && parentPort !== null, "the worker is started by progress.ts");

const start = performance.now();
let progress: ShownProgress = { label: "working", done: 0, of: 0 };
let drawn = false;
for (let tick = 0; Atomics.wait(flags, stopRequested, 0, interval) === "timed-out"; tick++) {
  for (let next = receiveMessageOnPort(parentPort); next !== undefined; next = receiveMessageOnPort(parentPort)) {
    const message: unknown = next.message;
    if (isProgress(message)) progress = message;
  }
  const elapsed = performance.now() - start;
  if (elapsed < delay) continue;
  writeSync(stderr, `${eraseLine}${progressLine(progress, tick, elapsed / 1000)}`);
  drawn = true;
}
if (drawn) writeSync(stderr, eraseLine);
Atomics.store(flags, stopped, 1);
Atomics.notify(flags, stopped);
