/**
 * The command that each worker is at, in shared memory: when a worker dies without a word, this says what it was doing. One cache line per
 * worker; a command is its number plus 1, and 0 is none.
 */
import { at } from "../../../support/invariant.ts";

const lineWords = 16;

export function runningWords(workers: number): number {
  return lineWords * workers;
}

/** A worker's own word as a property, the number of a command; -1 for none. */
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
