/**
 * The command that each worker is running, in shared memory: if a worker dies silently, this says what it was doing.
 * One cache line per worker. A command is its number plus 1; 0 is none.
 */
import { at } from "../../../support/invariant.ts";

const lineWords = 16;

export function runningWords(workers: number): number {
  return lineWords * workers;
}

/** A worker's own word as a property: the number of a command, or -1 for none. */
export function currentCommand(running: Int32Array, worker: number): { command: number } {
  const word = lineWords * worker;
  return {
    get command() {
      return at(running, word) - 1;
    },
    set command(command) {
      running[word] = command + 1;
    },
  };
}
