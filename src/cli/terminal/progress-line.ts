/** The line of a command in progress. */

/** `of` is 0 for what cannot be counted. */
export interface Progress {
  readonly label: string;
  readonly done: number;
  readonly of: number;
}

/** Shared with the worker that draws the line: a request to stop, and its answer that the line is cleared. */
export const stopRequested = 0;
export const stopped = 1;

export function isProgress(message: unknown): message is Progress {
  return typeof message === "object" && message !== null && "label" in message && "done" in message && "of" in message;
}

const frames = ["|", "/", "-", "\\"] as const;
const width = 20;

/** `tick` turns the mark in front. */
export function progressLine({ label, done, of }: Progress, tick: number, seconds: number): string {
  const mark = frames[tick % frames.length] ?? "";
  const time = `(${Math.floor(seconds)} s)`;
  if (of === 0) return `${mark} ${label} ${time}`;
  const full = Math.floor((width * done) / of);
  return `${mark} ${label} [${"=".repeat(full)}${" ".repeat(width - full)}] ${done} of ${of} ${time}`;
}
