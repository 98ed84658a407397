#!/usr/bin/env node
/** The executable: runs the command line on the process's arguments and streams. */
import process from "node:process";
import { runCli } from "./cli.ts";
import { exitStatus } from "./exit-status.ts";
import { processTerminal } from "./terminal/terminal.ts";

// A reader such as `head` may close the pipe early, which is not an error. A full disk is a failed run.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit();
  process.stderr.write(`error: the output cannot be written: ${error.message}\n`);
  process.exit(exitStatus.runFailed);
});

process.exitCode = await runCli(process.argv.slice(2), processTerminal());
