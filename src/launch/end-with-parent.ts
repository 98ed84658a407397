/**
 * A rank that Braid's launcher started ends when the launcher does, however that ended: the launcher holds the other end of its standard
 * input and writes nothing to it.
 */
import process from "node:process";

/** Calls `end` when the launcher is gone. The pipe alone does not keep the process alive. */
export function endWithParent(end: () => void): void {
  process.stdin.on("end", end).on("error", end).resume();
  if ("unref" in process.stdin) process.stdin.unref();
}
