/** Blocks for a minute in `blocked`, or calls the end off and blocks for less than it would take. */
import process from "node:process";
import { exitStatus } from "../../src/cli/exit-status.ts";
import { endLater } from "../../src/backends/end-later.ts";

const block = (milliseconds: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

const callOff = endLater({ milliseconds: 500, status: exitStatus.runFailed, words: "too late\n" });
if (process.argv[2] === "blocked") block(60_000);
callOff();
setTimeout(() => {}, 1000);
