/**
 * Shows on a terminal what a command is doing once it has taken a second. A worker thread draws the line, because the
 * work keeps this thread busy.
 */
import { Worker } from "node:worker_threads";
import { packageFile } from "../../backends/package-file.ts";
import type { OnProgress } from "../../support/progress.ts";
import { escapeLine } from "../../support/wording.ts";
import type { Terminal } from "./terminal.ts";

export type ProgressStep = OnProgress;

/** Milliseconds for the worker to clear its line. */
const patience = 500;

/** Returns the result of `work`. The line is cleared by then, so that the caller may print. */
export async function withProgress<T>(terminal: Terminal, work: (step: ProgressStep) => Promise<T>): Promise<T> {
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
      worker.postMessage({ label: escapeLine(label), done, of } satisfies ShownProgress);
    });
  } finally {
    Atomics.store(flags, stopRequested, 1);
    Atomics.notify(flags, stopRequested);
    Atomics.wait(flags, stopped, 0, patience);
  }
}

// The line of a command in progress.

/** `of` is 0 for what cannot be counted. */
export interface ShownProgress {
  readonly label: string;
  readonly done: number;
  readonly of: number;
}

/** Shared with the worker that draws the line: a request to stop, and its answer that the line is cleared. */
export const stopRequested = 0;
export const stopped = 1;

export function isProgress(message: unknown): message is ShownProgress {
  return typeof message === "object" && message !== null && "label" in message && "done" in message && "of" in message;
}

const frames = ["|", "/", "-", "\\"] as const;
const width = 20;

/** `tick` turns the mark in front. */
export function progressLine({ label, done, of }: ShownProgress, tick: number, seconds: number): string {
  const mark = frames[tick % frames.length] ?? "";
  const time = `(${Math.floor(seconds)} s)`;
  if (of === 0) return `${mark} ${label} ${time}`;
  const full = Math.floor((width * done) / of);
  return `${mark} ${label} [${"=".repeat(full)}${" ".repeat(width - full)}] ${done} of ${of} ${time}`;
}
