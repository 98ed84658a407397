/**
 * Ends a rank when the launcher that started it ends for any reason. The launcher holds the other end of the rank's
 * standard input and writes nothing to it.
 */
import process from "node:process";

/** Calls `end` when the launcher has ended. The pipe alone does not keep the process alive. */
export function endWithParent(end: () => void): void {
  process.stdin.on("end", end).on("error", end).resume();
  if ("unref" in process.stdin) process.stdin.unref();
}
