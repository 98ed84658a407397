/**
 * Shows on a terminal what a command is doing once it has taken a second. A worker thread draws the line, because the
 * work keeps this thread busy.
 */
import { Worker } from "node:worker_threads";
import { packageFile } from "../../backends/package-file.ts";
import { escapeLine } from "../../support/wording.ts";
import type { OnProgress } from "../../support/progress.ts";
import { type Progress, stopped, stopRequested } from "./progress-line.ts";
import type { Terminal } from "./terminal.ts";

export type Step = OnProgress;

/** Milliseconds for the worker to clear its line. */
const patience = 500;

/** Returns the result of `work`. The line is cleared by then, so that the caller may print. */
export async function withProgress<T>(terminal: Terminal, work: (step: Step) => Promise<T>): Promise<T> {
  if (!terminal.interactive) return work(() => {});
  const flags = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(packageFile("dist/cli/terminal/progress-worker.js"), {
    workerData: flags,
    execArgv: [],
  });
  worker.unref();
  // A missing progress line never fails a command.
  worker.on("error", () => {});
  try {
    return await work((label, done = 0, of = 0) => {
      worker.postMessage({ label: escapeLine(label), done, of } satisfies Progress);
    });
  } finally {
    Atomics.store(flags, stopRequested, 1);
    Atomics.notify(flags, stopRequested);
    Atomics.wait(flags, stopped, 0, patience);
  }
}
