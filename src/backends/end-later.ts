/** Ends a process whose main thread a library may block. */
import { Worker } from "node:worker_threads";

/** What another thread does after the time, unless it is called off. */
export interface LaterEnd {
  readonly milliseconds: number;
  readonly status: number;
  /** Printed to standard error. */
  readonly words?: string;
}

/**
 * Another thread ends the process: at once, since Node's own exit waits for the blocked thread, and with the status, if
 * libc can be called. Returns what calls it off. The thread alone does not keep the process alive.
 */
export function endLater({ milliseconds, status, words = "" }: LaterEnd): () => void {
  const program = `setTimeout(() => {
    try {
      process.getBuiltinModule("node:fs").writeSync(2, ${JSON.stringify(words)});
      const require = process.getBuiltinModule("node:module").createRequire(${JSON.stringify(import.meta.url)});
      require("koffi").load(null).func("void _exit(int status)")(${status});
    } finally {
      process.kill(process.pid, "SIGKILL");
    }
  }, ${milliseconds})`;
  const worker = new Worker(program, { eval: true, execArgv: [] });
  worker.unref();
  return () => void worker.terminate();
}
